#pragma once
// Files of lines that a run appends to, also after a resume. Private to the layer.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <string_view>

namespace lockstep::inline internal {

/// Appends `line` and an end of line to a file opened with O_APPEND. If a full disk takes only a
/// part of it, removes that part. Errors: kIo naming `what`.
void append_line(int fd, const std::string& line, const std::string& what);

/// Moves an unusable log away, so that it does not stop the run: renames `path` to PATH.1 (.2,
/// ...), and warns with `why`. Errors: kIo.
void set_aside(const std::filesystem::path& path, const std::string& why);

/// Calls `each` for the lines of a file, in order and without their ends. A last line without end
/// (the writer was killed) is left out. Holds one line at a time; longer ones are cut to kMaxLine.
/// Of a file of more than `most_bytes` it reads this number of bytes, in parts spread evenly from
/// begin to end. Errors: kNotFound, kIo; exceptions of `each`.
void each_whole_line(const std::filesystem::path& path,
                     const std::function<void(std::string_view line)>& each,
                     int64_t most_bytes = std::numeric_limits<int64_t>::max());

inline constexpr size_t kMaxLine = 1 << 20;

}  // namespace lockstep::inline internal
