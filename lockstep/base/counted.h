#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::inline internal {

/// "1 rank", "2 ranks". `many`: the plural, if it is not `one` with an s.
std::string counted(int64_t number, std::string_view one, std::string_view many = "");

}  // namespace lockstep::inline internal
