#pragma once
// Folders: made, or held so that one process at a time writes into one.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/unique_fd.h"

namespace lockstep {

/// "runs/x" of "runs/x/": what a new name is made of, and what rename takes as one.
std::filesystem::path without_slash(const std::filesystem::path& path);

/// `path` from the root on. Errors: kInvalidArgument where it is empty; `what` says whose name it
/// is.
std::filesystem::path absolute_folder(const std::filesystem::path& path, const std::string& what);

/// The folder, and those above it, where they are missing. Errors, naming it: kInvalidArgument (not
/// allowed, a file is in the way, ..), kIo (full or broken disk).
void make_folder(const std::filesystem::path& path);

/// Makes `path` whole or not at all: `fill` writes into the folder PATH.tmp, which gets the name
/// when that is done. A PATH.tmp of a process that was killed goes first, so one process at a time;
/// at `path` there may be an empty folder. Errors: those of `fill` and make_folder(),
/// filesystem_error, kIo; then no PATH.tmp is left.
void fill_folder(const std::filesystem::path& path,
                 const std::function<void(const std::filesystem::path& temporary)>& fill);

/// Holds a folder by flock(2) of the folder itself, so nothing is left behind: the kernel lets go
/// when the process ends, however it does. A folder that is renamed stays held.
class FolderLock {
 public:
  /// Nothing when another process (or another lock of this one) holds the folder. Where the file
  /// system knows no such locks (NFS), the folder counts as free. Errors: kIo.
  static std::optional<FolderLock> take(const std::filesystem::path& folder);

 private:
  explicit FolderLock(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
};

/// Names of a folder's entries, sorted; none where it is not there.
std::vector<std::string> entry_names(const std::string& folder);

}  // namespace lockstep
