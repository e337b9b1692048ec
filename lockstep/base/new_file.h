#pragma once
// Files in a folder that nobody uses yet, such as the hidden one of a checkpoint.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/unique_fd.h"

namespace lockstep {

/// They are synced together: while the next is written, the disk works for the one before. Their
/// names are synced by sync_folder(). After an error parts of them may be there. Errors: kIo, which
/// names the path.
class NewFiles {
 public:
  /// Makes (or empties) the file, and lets `fill` write to its descriptor. Errors: also its own.
  void write(const std::filesystem::path& path, const std::function<void(int fd)>& fill);
  void write(const std::filesystem::path& path, std::string_view bytes);
  /// After this the files survive a power cut.
  void sync();

 private:
  std::vector<std::pair<std::string, UniqueFd>> unsynced_;
};

/// Takes the space of a new file of this size at once, which costs less than piece by piece. Does
/// nothing on a file system without such a call. Errors: kIo with `what`, as for a full disk.
void reserve(int fd, size_t size, const std::string& what);
/// Lets the disk begin with these bytes of a file, so that a later fsync() waits less. A hint.
void begin_writeback(int fd, size_t begin, size_t end);

}  // namespace lockstep
