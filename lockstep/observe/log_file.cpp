#include "lockstep/observe/log_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/folder.h"
#include "lockstep/base/log.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

constexpr int64_t kPart = 256 << 10;  // bytes of one read

/// Splits bytes into lines.
class Lines {
 public:
  explicit Lines(const std::function<void(std::string_view)>& each) : each_(each) {}

  /// The next bytes are from another place: they are a partial line up to the next end of line.
  void jump() {
    begun_.clear();
    whole_ = false;
  }

  void take(std::string_view bytes) {
    for (size_t end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n')) {
      append(bytes.substr(0, end));
      if (whole_) each_(begun_);
      begun_.clear();
      whole_ = true;
      bytes.remove_prefix(end + 1);
    }
    append(bytes);
  }

 private:
  void append(std::string_view bytes) {
    begun_.append(bytes.substr(0, kMaxLine - std::min(kMaxLine, begun_.size())));
  }

  const std::function<void(std::string_view)>& each_;
  std::string begun_;
  bool whole_ = true;
};

}  // namespace

void append_line(int fd, const std::string& line, const std::string& what) {
  struct stat before {};
  if (::fstat(fd, &before) != 0) throw io_error("stat " + what);
  const std::string bytes = line + "\n";
  try {
    write_all(fd, bytes.data(), bytes.size(), what);
  } catch (const Error&) {
    (void)!::ftruncate(fd, before.st_size);
    throw;
  }
}

void set_aside(const std::filesystem::path& path, const std::string& why) {
  const auto target = numbered_path(path);
  std::error_code error;
  std::filesystem::rename(path, target, error);
  if (error) {
    throw Error(ErrorCode::kIo,
                fmt::format("move {} to {}: {}", path.string(), target.string(), error.message()));
  }
  log_warn(fmt::format("{}; it is now {}, and the run goes on without it", why, target.string()));
}

void each_whole_line(const std::filesystem::path& path,
                     const std::function<void(std::string_view line)>& each, int64_t most_bytes) {
  const UniqueFd fd = open_to_read(path);
  struct stat about {};
  if (::fstat(fd.get(), &about) != 0) throw io_error("stat " + path.string());
  const int64_t parts = std::max<int64_t>(1, most_bytes / kPart);
  const int64_t gap = std::max<int64_t>(0, (about.st_size - parts * kPart) / parts);
  std::vector<char> buffer(kPart);
  Lines lines(each);
  int64_t at = 0;
  while (true) {
    const ssize_t got = ::pread(fd.get(), buffer.data(), buffer.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw io_error("read " + path.string());
    if (got == 0) return;
    lines.take({buffer.data(), static_cast<size_t>(got)});
    at += got;
    const int64_t last = std::max(at, about.st_size - kPart);  // where the last part begins
    if (gap == 0 || at >= about.st_size) continue;
    const int64_t next = std::min(at + gap, last);
    if (next != at) lines.jump();
    at = next;
  }
}

}  // namespace lockstep::inline internal
