#include "lockstep/checkpoint/byte_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

void ByteSource::read(uint64_t offset, void* into, uint64_t count) const {
  if (offset > size_ || count > size_ - offset) {
    throw Error(ErrorCode::kCorrupt,
                fmt::format("{}: {} bytes are wanted at byte {}, the file has {}", name_, count,
                            offset, size_));
  }
  if (count > 0) fetch(offset, into, count);
}

std::string ByteSource::read(uint64_t offset, uint64_t count) const {
  if (offset > size_ || count > size_ - offset) read(offset, nullptr, count);  // throws
  std::string bytes(count, '\0');
  read(offset, bytes.data(), count);
  return bytes;
}

void ByteSource::read_pieces(uint64_t offset, uint64_t count,
                             const std::function<void(std::string_view)>& use) const {
  constexpr uint64_t kPiece = uint64_t{1} << 18;
  std::vector<char> piece(std::min(kPiece, count));
  for (uint64_t done = 0; done < count; done += kPiece) {
    const uint64_t size = std::min(kPiece, count - done);
    read(offset + done, piece.data(), size);
    use({piece.data(), size});
  }
}

std::unique_ptr<FileBytes> FileBytes::open(const std::filesystem::path& path, std::string name) {
  if (name.empty()) name = path.string();
  UniqueFd fd = open_to_read(path);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) throw io_error("stat " + name);
  if (!S_ISREG(info.st_mode)) {
    throw Error(ErrorCode::kInvalidArgument, name + " is no file of weights");
  }
  return std::unique_ptr<FileBytes>(
      new FileBytes(std::move(name), static_cast<uint64_t>(info.st_size), std::move(fd)));
}

void FileBytes::fetch(uint64_t offset, void* into, uint64_t count) const {
  const size_t got = read_at(fd_.get(), offset, into, count, name());
  if (got < count) {
    throw Error(ErrorCode::kCorrupt,
                fmt::format("{}: ends at byte {} while being read", name(), offset + got));
  }
}

void MemoryBytes::fetch(uint64_t offset, void* into, uint64_t count) const {
  std::memcpy(into, bytes_.data() + offset, count);
}

}  // namespace lockstep::inline internal
