#include "lockstep/ocr/data/line_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>

#include "lockstep/base/file.h"
#include "lockstep/base/reading_note.h"
#include "lockstep/error.h"

namespace lockstep::ocr {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();

[[noreturn]] void fail_to_read(const std::string& name, int error) {
  throw Error(ErrorCode::kIo, fmt::format("read {}: {}", name, std::strerror(error)));
}

}  // namespace

void for_each_line(std::istream& file,
                   const std::function<void(const std::string& line, FileLine)>& found) {
  uint64_t offset = 0;
  uint64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    const uint64_t begin = offset;
    offset += line.size() + 1;
    ++number;
    const bool marked = number == 1 && line.starts_with(kByteOrderMark);
    if (marked) line.erase(0, kByteOrderMark.size());
    if (line.size() > kMost || number > kMost) {
      throw Error(ErrorCode::kCorrupt, "a line, or a number of lines, of 4 Gi: no label file");
    }
    if (line.find_first_not_of(" \t\r\v\f") == std::string::npos) continue;
    found(line, {.offset = begin + (marked ? kByteOrderMark.size() : 0),
                 .size = static_cast<uint32_t>(line.size()),
                 .number = static_cast<uint32_t>(number)});
  }
}

LineFile::LineFile(const std::filesystem::path& path)
    : name_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (fd_) return;
  if (errno == ENOENT) throw Error(ErrorCode::kNotFound, name_ + ": no such file");
  fail_to_read(name_, errno);
}

void LineFile::scan(const std::function<void(const std::string& line, FileLine)>& found) const {
  struct stat facts {};
  if (::fstat(fd_.get(), &facts) != 0) fail_to_read(name_, errno);
  if (S_ISDIR(facts.st_mode)) fail_to_read(name_, EISDIR);
  std::ifstream file(name_, std::ios::binary);
  if (!file) fail_to_read(name_, errno);
  for_each_line(file, found);
  if (file.bad()) fail_to_read(name_, EIO);
}

std::string LineFile::read(FileLine place) const {
  const ReadingNote note(name_);
  std::string line(place.size, '\0');
  if (read_at(fd_.get(), place.offset, line.data(), line.size(), name_) < line.size()) {
    throw Error(ErrorCode::kCorrupt,
                fmt::format("{}:{}: the file has become shorter", name_, place.number));
  }
  return line;
}

}  // namespace lockstep::ocr
