#pragma once
// Files in a folder that nobody uses yet, such as the hidden one of a checkpoint.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace lockstep {

/// Makes (or empties) the file, lets `fill` write to its descriptor, and syncs it. Its name is
/// synced by sync_folder(). After an error a part of the file may be there. Errors: kIo, which
/// names the path, and those of `fill`.
void write_new_file(const std::filesystem::path& path, const std::function<void(int fd)>& fill);
void write_new_file(const std::filesystem::path& path, std::string_view bytes);

/// Takes the space of a new file of this size at once, which costs less than piece by piece. Does
/// nothing on a file system without such a call. Errors: kIo with `what`, as for a full disk.
void reserve(int fd, size_t size, const std::string& what);
/// Lets the disk begin with these bytes of a file, so that a later fsync() waits less. A hint.
void begin_writeback(int fd, size_t begin, size_t end);

}  // namespace lockstep
