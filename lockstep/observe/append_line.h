#pragma once
// Private to the layer.

#include <string>

namespace lockstep {

/// Appends `line` and an end of line to a file opened with O_APPEND; takes a part that a full disk
/// let through away again. Errors: kIo naming `what`.
void append_line(int fd, const std::string& line, const std::string& what);

}  // namespace lockstep
