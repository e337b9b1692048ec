#include "lockstep/base/new_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "lockstep/base/file.h"
#include "lockstep/error.h"

namespace lockstep {

void NewFiles::write(const std::filesystem::path& path, const std::function<void(int fd)>& fill) {
  constexpr size_t kMaxOpen = 16;  // descriptors are few
  if (unsynced_.size() == kMaxOpen) sync();
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd) throw io_error("create " + path.string());
  fill(fd.get());
  unsynced_.emplace_back(path.string(), std::move(fd));
}

void NewFiles::write(const std::filesystem::path& path, std::string_view bytes) {
  write(path, [&](int fd) { write_all(fd, bytes.data(), bytes.size(), path.string()); });
}

void NewFiles::sync() {
  for (const auto& [path, fd] : unsynced_) {
    if (::fsync(fd.get()) != 0) throw io_error("sync " + path);
  }
  unsynced_.clear();
}

void reserve(int fd, size_t size, const std::string& what) {
  while (::fallocate(fd, 0, 0, static_cast<off_t>(size)) != 0) {
    if (errno == EINTR) continue;
    if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG) throw io_error("write " + what);
    return;  // not on this file system
  }
}

void begin_writeback(int fd, size_t begin, size_t end) {
  const auto size = static_cast<off_t>(end - begin);
  ::sync_file_range(fd, static_cast<off_t>(begin), size, SYNC_FILE_RANGE_WRITE);
}

}  // namespace lockstep
