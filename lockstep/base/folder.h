#pragma once
// Folders: creation, and a lock that lets one process at a time write into one.

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/in_child.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/deadline.h"

namespace lockstep::inline internal {

/// "runs/x" of "runs/x/": for derived names, and for rename.
std::filesystem::path without_slash(const std::filesystem::path& path);

/// `path` as an absolute path. Errors: kInvalidArgument if it is empty; `what` describes it in the
/// message.
std::filesystem::path absolute_folder(const std::filesystem::path& path, const std::string& what);

/// `path` if there is such a file or folder, else its nearest parent that exists; empty if a
/// relative path has none.
std::filesystem::path nearest_existing(std::filesystem::path path);

/// STEM.1, or the first of STEM.2, STEM.3, ... that does not exist, not even as a dangling link.
std::filesystem::path numbered_path(const std::filesystem::path& stem);

/// Creates the folder, and missing ones above it. Errors, which name it: kInvalidArgument (not
/// allowed, a file is in the way, ..), kIo (full or broken disk).
void make_folder(const std::filesystem::path& path);

/// Creates `path` whole or not at all: `fill` writes into the folder PATH.tmp, which is renamed
/// afterwards. It first removes a PATH.tmp that a killed process left, so only one process at a
/// time may call it. `path` may be an empty folder. Errors: those of `fill` and make_folder(),
/// filesystem_error, kIo; PATH.tmp is then removed.
void fill_folder(const std::filesystem::path& path,
                 const std::function<void(const std::filesystem::path& temporary)>& fill);

/// Locks a folder by flock(2) on the folder itself. No file is left behind: the kernel releases the
/// lock when the process ends, in any way, even if a child that it forked lives on. A renamed
/// folder stays locked.
class FolderLock {
 public:
  /// Nothing if another process (or another lock of this one) holds the folder. If the file system
  /// has no such locks (NFS), the folder counts as free. Errors: kIo.
  static std::optional<FolderLock> take(const std::filesystem::path& folder);
  /// Takes it once it is free; nothing at the deadline. Calls `on_wait` once before it waits.
  static std::optional<FolderLock> await(const std::filesystem::path& folder, Deadline deadline,
                                         const std::function<void()>& on_wait);
  /// False if the file system has no such locks: other processes may hold the folder, too.
  bool excludes() const { return excludes_; }

  FolderLock(FolderLock&&) = default;
  FolderLock& operator=(FolderLock&& other) noexcept {
    not_in_child_.reset();  // before its descriptor's number is another file's
    fd_ = std::move(other.fd_);
    not_in_child_ = std::move(other.not_in_child_);
    excludes_ = other.excludes_;
    return *this;
  }

 private:
  FolderLock(UniqueFd fd, bool excludes)
      : fd_(std::move(fd)),
        not_in_child_(std::make_unique<NotInChild>(fd_.get())),
        excludes_(excludes) {}

  UniqueFd fd_;
  std::unique_ptr<NotInChild> not_in_child_;
  bool excludes_;
};

/// Names of a folder's entries, sorted. (A range's loop over a directory_iterator throws another
/// exception if the disk breaks, also with an error code.) Errors: kIo.
std::vector<std::string> list_folder(const std::string& folder);

/// The same where a failure does not matter: the names before it.
std::vector<std::string> entry_names(const std::string& folder);

}  // namespace lockstep::inline internal
