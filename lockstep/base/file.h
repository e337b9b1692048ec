#pragma once
// Whole files: reading with a size limit, replacing so that a reader sees the old or the new one,
// and writing new ones.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/unique_fd.h"

namespace lockstep::inline internal {

/// The file's bytes. Errors: kNotFound (does not exist), kIo, kCorrupt (longer than `max_bytes`).
std::string read_file(const std::filesystem::path& path, int64_t max_bytes = int64_t{1} << 30);

/// The same, or nothing if it is not readable: of a process that has ended, or not supported by
/// this kernel.
std::string read_if_there(const std::filesystem::path& path, int64_t max_bytes = int64_t{1} << 20);

/// Replaces `path` whole or not at all: writes PATH.tmp-..., fsync, rename, fsync of the folder. On
/// any failure (including a full disk) the temporary file is removed and `path` is unchanged.
/// `fill` writes to its descriptor. Errors: kIo, which names the path.
void write_file_atomically(const std::filesystem::path& path,
                           const std::function<void(int fd)>& fill);
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

/// fsync of a folder: names made or renamed in it survive a power cut. Errors: kIo.
void sync_folder(const std::filesystem::path& folder);

/// Opens the file for reading. Errors: kNotFound, kIo.
UniqueFd open_to_read(const std::filesystem::path& path);

/// Repeats pread(2) until `size` bytes from `offset` on are read, or the file ends; returns their
/// number. Errors: kIo with `what` and the byte.
size_t read_at(int fd, uint64_t offset, void* to, size_t size, const std::string& what);

/// Repeats write(2) until all bytes are written. Errors: kIo with `what`.
void write_all(int fd, const void* data, size_t size, const std::string& what);

/// Files in a folder that nobody uses yet, such as the hidden one of a checkpoint.
/// They are synced together: while the next is written, the disk works for the one before. Their
/// names are synced by sync_folder(). After an error parts of them may be there. Errors: kIo, which
/// names the path.
class NewFiles {
 public:
  /// Makes (or empties) the file, and lets `fill` write to its descriptor. `shown`: its name in
  /// errors, where `path` is none of a user's. Errors: also those of `fill`.
  void write(const std::filesystem::path& path, const std::function<void(int fd)>& fill,
             const std::string& shown = "");
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

/// Checks, before long work, that its result can be written to `path`. Errors: kNotFound if the
/// folder of `path` does not exist, kInvalidArgument if `path` is a folder, or if this user may not
/// write there.
void check_output_file(const std::filesystem::path& path);

}  // namespace lockstep::inline internal
