#include "lockstep/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "lockstep/base/namespaces.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

namespace {

/// Of file systems that cannot sync folders, such as VirtualBox's and some of FUSE: a new name
/// lasts there as soon as they see fit.
bool cannot_sync(int error) {
  return error == EINVAL || error == EBADF || error == ENOTSUP || error == ENOSYS;
}

}  // namespace

void sync_folder(const std::filesystem::path& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd && errno == EACCES) return;  // it may be written, and not read
  if (fd && (::fsync(fd.get()) == 0 || cannot_sync(errno))) return;
  throw io_error("sync folder " + folder.string());
}

namespace {

UniqueFd try_to_open(const std::filesystem::path& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

/// See read_file(); `fd` is of `path`.
std::string read_opened(const UniqueFd& fd, const std::filesystem::path& path, int64_t max_bytes) {
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) throw io_error("stat " + path.string());
  if (S_ISDIR(info.st_mode)) {
    throw Error(ErrorCode::kInvalidArgument, path.string() + " is a folder, a file is needed");
  }
  if (info.st_size > max_bytes) {
    throw Error(ErrorCode::kCorrupt, fmt::format("{}: {} bytes, at most {} are read", path.string(),
                                                 info.st_size, max_bytes));
  }
  // Files in /proc do not show their size, and some can only be read in one call.
  constexpr int64_t kLeast = 4096;
  std::string bytes(static_cast<size_t>(std::max(info.st_size + 1, kLeast)), '\0');
  size_t size = 0;
  while (true) {
    const ssize_t got = ::read(fd.get(), bytes.data() + size, bytes.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw io_error("read " + path.string());
    size += static_cast<size_t>(got);
    if (static_cast<int64_t>(size) > max_bytes) {
      throw Error(ErrorCode::kCorrupt, fmt::format("{}: over {} bytes", path.string(), max_bytes));
    }
    const bool is_all = S_ISREG(info.st_mode) && static_cast<int64_t>(size) == info.st_size;
    if (got == 0 || is_all) break;
    if (size == bytes.size()) bytes.resize(size + (size_t{1} << 16));  // it grew, or is not regular
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace

UniqueFd open_to_read(const std::filesystem::path& path) {
  UniqueFd fd = try_to_open(path);
  if (!fd && errno == ENOENT) {
    throw Error(ErrorCode::kNotFound, path.string() + ": no such file");
  }
  if (!fd) throw io_error("open " + path.string());
  return fd;
}

std::string read_file(const std::filesystem::path& path, int64_t max_bytes) {
  return read_opened(open_to_read(path), path, max_bytes);
}

// A file that is not there is no exception: the first one of a process costs 50 us and more.
std::string read_if_there(const std::filesystem::path& path, int64_t max_bytes) {
  const UniqueFd fd = try_to_open(path);
  if (!fd) return "";
  try {
    return read_opened(fd, path, max_bytes);
  } catch (const Error&) {
    return "";
  }
}

size_t read_at(int fd, uint64_t offset, void* to, size_t size, const std::string& what) {
  size_t done = 0;
  while (done < size) {
    const uint64_t at = offset + done;
    const ssize_t got =
        ::pread(fd, static_cast<char*>(to) + done, size - done, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw io_error(fmt::format("read {} at byte {}", what, at));
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

void write_all(int fd, const void* data, size_t size, const std::string& what) {
  const auto* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t put = ::write(fd, next, size);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw io_error("write " + what);
    next += put;
    size -= static_cast<size_t>(put);
  }
}

void write_file_atomically(const std::filesystem::path& path,
                           const std::function<void(int fd)>& fill) {
  // Containers, and hosts that share a disk, have equal pids.
  const std::string temporary =
      fmt::format("{}.tmp-{:x}-{}", path.string(), pid_space_of_all_hosts(), ::getpid());
  try {
    NewFiles file;
    file.write(temporary, fill, path.string());
    file.sync();
    if (::rename(temporary.c_str(), path.c_str()) != 0)
      throw io_error("rename to " + path.string());
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_folder(path.has_parent_path() ? path.parent_path() : ".");
}

void write_file_atomically(const std::filesystem::path& path, std::string_view bytes) {
  write_file_atomically(path,
                        [&](int fd) { write_all(fd, bytes.data(), bytes.size(), path.string()); });
}

void NewFiles::write(const std::filesystem::path& path, const std::function<void(int fd)>& fill,
                     const std::string& shown) {
  constexpr size_t kMaxOpen = 16;  // descriptors are few
  if (unsynced_.size() == kMaxOpen) sync();
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  const std::string name = shown.empty() ? path.string() : shown;
  if (!fd) throw io_error("create " + name);
  fill(fd.get());
  unsynced_.emplace_back(name, std::move(fd));
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

void check_output_file(const std::filesystem::path& path) {
  std::error_code failure;
  const auto folder = path.has_parent_path() ? path.parent_path() : ".";
  if (!std::filesystem::is_directory(folder, failure)) {
    if (failure && failure != std::errc::no_such_file_or_directory) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{} cannot be written: folder {}: {}", path.string(), folder.string(),
                              failure.message()));
    }
    throw Error(ErrorCode::kNotFound,
                path.string() + " cannot be written: there is no folder " + folder.string());
  }
  if (std::filesystem::is_directory(path, failure)) {
    throw Error(ErrorCode::kInvalidArgument, path.string() + " is a folder, a file is needed");
  }
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{} cannot be written: folder {}: {}", path.string(), folder.string(),
                          std::strerror(errno)));
}

}  // namespace lockstep::inline internal
