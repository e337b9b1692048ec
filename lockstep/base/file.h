#pragma once
// Whole files: reading with a size limit, and replacing so that a reader sees the old or the new
// one.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "lockstep/base/unique_fd.h"

namespace lockstep {

/// The file's bytes. Errors: kNotFound (does not exist), kIo, kCorrupt (longer than `max_bytes`).
std::string read_file(const std::filesystem::path& path, int64_t max_bytes = int64_t{1} << 30);

/// The same, or nothing if it is not readable: of a process that has ended, or not supported by
/// this kernel.
std::string read_if_there(const std::filesystem::path& path, int64_t max_bytes = int64_t{1} << 20);

/// Replaces `path` whole or not at all: writes PATH.tmp-PID, fsync, rename, fsync of the folder. On
/// any failure (including a full disk) the temporary file is removed and `path` is unchanged.
/// `fill` writes to its descriptor. Errors: kIo, which names the path.
void write_file_atomically(const std::filesystem::path& path,
                           const std::function<void(int fd)>& fill);
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

/// fsync of a folder: names made or renamed in it survive a power cut. Errors: kIo.
void sync_folder(const std::filesystem::path& folder);

/// Opens the file for reading. Errors: kNotFound, kIo.
UniqueFd open_to_read(const std::filesystem::path& path);

/// Repeats write(2) until all bytes are written. Errors: kIo with `what`.
void write_all(int fd, const void* data, size_t size, const std::string& what);

}  // namespace lockstep
