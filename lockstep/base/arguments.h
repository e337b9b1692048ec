#pragma once
// Command lines.

#include <string>
#include <vector>

namespace lockstep {

/// The program's arguments in reverse order, as CLI11 takes them. Users of MindOCR write -c=FILE,
/// which CLI11 would take for the file "=FILE": such a word becomes two.
std::vector<std::string> reversed_arguments(int argc, const char* const* argv);

}  // namespace lockstep
