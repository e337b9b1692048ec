#pragma once
// Command lines.

#include <string>
#include <vector>

namespace lockstep {

/// The program's arguments, the last first, as CLI11 takes them. MindOCR's users write -c=FILE,
/// which CLI11 would take for the file "=FILE": such a word becomes two.
std::vector<std::string> reversed_arguments(int argc, const char* const* argv);

}  // namespace lockstep
