#include "lockstep/base/folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "lockstep/base/file.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

std::filesystem::path without_slash(const std::filesystem::path& path) {
  const std::filesystem::path normal = path.lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

std::filesystem::path absolute_folder(const std::filesystem::path& path, const std::string& what) {
  if (path.empty()) throw Error(ErrorCode::kInvalidArgument, what + " has an empty name");
  return without_slash(std::filesystem::absolute(path));
}

std::filesystem::path nearest_existing(std::filesystem::path path) {
  std::error_code ignored;
  while (!std::filesystem::exists(path, ignored) && path.has_relative_path()) {
    path = path.parent_path();
  }
  return path;
}

void make_folder(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error) return;
  const bool of_disk = error == std::errc::no_space_on_device || error == std::errc::io_error;
  throw Error(of_disk ? ErrorCode::kIo : ErrorCode::kInvalidArgument,
              fmt::format("cannot make the folder {}: {}", path.string(), error.message()));
}

void fill_folder(const std::filesystem::path& path,
                 const std::function<void(const std::filesystem::path& temporary)>& fill) {
  namespace fs = std::filesystem;
  const fs::path temporary = path.string() + ".tmp";
  try {
    fs::remove_all(temporary);
    make_folder(temporary);
    fill(temporary);
    fs::rename(temporary, path);
  } catch (const std::exception& error) {
    std::error_code ignored;
    fs::remove_all(temporary, ignored);
    if (dynamic_cast<const fs::filesystem_error*>(&error) == nullptr) throw;
    throw Error(ErrorCode::kIo, fmt::format("make the folder {}: {}", path.string(), error.what()));
  }
  sync_folder(path.has_parent_path() ? path.parent_path() : ".");
}

std::optional<FolderLock> FolderLock::take(const std::filesystem::path& folder) {
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) throw io_error("open folder " + folder.string());
  int result = 0;
  do {
    result = ::flock(fd.get(), LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  if (result != 0 && errno == EWOULDBLOCK) return std::nullopt;
  return FolderLock(std::move(fd), result == 0);
}

std::optional<FolderLock> FolderLock::await(const std::filesystem::path& folder, Deadline deadline,
                                            const std::function<void()>& on_wait) {
  for (bool told = false;; told = true) {
    auto lock = take(folder);
    if (lock || deadline.passed()) return lock;
    if (!told) on_wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

namespace {

std::vector<std::string> names_before(const std::string& folder, std::error_code& failure) {
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator it(folder, failure), end; !failure && it != end;
       it.increment(failure)) {
    names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::filesystem::path numbered_path(const std::filesystem::path& stem) {
  namespace fs = std::filesystem;
  for (int number = 1;; ++number) {
    fs::path path = fmt::format("{}.{}", stem.string(), number);
    if (!fs::exists(fs::symlink_status(path))) return path;
  }
}

std::vector<std::string> list_folder(const std::string& folder) {
  std::error_code failure;
  std::vector<std::string> names = names_before(folder, failure);
  if (!failure) return names;
  throw Error(ErrorCode::kIo, fmt::format("list {}: {}", folder, failure.message()));
}

std::vector<std::string> entry_names(const std::string& folder) {
  std::error_code ignored;
  return names_before(folder, ignored);
}

}  // namespace lockstep::inline internal
