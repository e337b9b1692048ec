#pragma once
// Private to the layer.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <string_view>

namespace lockstep {

/// Calls `each` for the lines of a file, without their ends and in order; a last line without end
/// (the writer was killed) is left out. Holds one line at a time; one beyond kMaxLine comes cut to
/// that. Of a file of more than `most_bytes` it reads so many, in parts spread evenly from its
/// begin to its end. Errors: kNotFound, kIo; what `each` throws.
void each_whole_line(const std::filesystem::path& path,
                     const std::function<void(std::string_view line)>& each,
                     int64_t most_bytes = std::numeric_limits<int64_t>::max());

inline constexpr size_t kMaxLine = 1 << 20;

}  // namespace lockstep
