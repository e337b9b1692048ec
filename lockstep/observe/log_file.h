#pragma once
// Files of lines that a run adds to, and may have to go on in. Private to the layer.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <string_view>

namespace lockstep {

/// Appends `line` and an end of line to a file opened with O_APPEND; takes a part that a full disk
/// let through away again. Errors: kIo naming `what`.
void append_line(int fd, const std::string& line, const std::string& what);

/// A log that a run cannot go on in must not stop the run: renames `path` to PATH.1 (.2, ...), and
/// warns of it with `why`. Errors: kIo.
void set_aside(const std::filesystem::path& path, const std::string& why);

/// Calls `each` for the lines of a file, without their ends and in order; a last line without end
/// (the writer was killed) is left out. Holds one line at a time; one beyond kMaxLine comes cut to
/// that. Of a file of more than `most_bytes` it reads so many, in parts spread evenly from its
/// begin to its end. Errors: kNotFound, kIo; what `each` throws.
void each_whole_line(const std::filesystem::path& path,
                     const std::function<void(std::string_view line)>& each,
                     int64_t most_bytes = std::numeric_limits<int64_t>::max());

inline constexpr size_t kMaxLine = 1 << 20;

}  // namespace lockstep
