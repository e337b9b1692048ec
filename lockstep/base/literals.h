#pragma once
// 300s and 5ms in the sources of Lockstep. Public headers do not use it: they would bring the
// literals into their users' code.

#include <chrono>

namespace lockstep::inline internal {

using namespace std::chrono_literals;

}  // namespace lockstep::inline internal
