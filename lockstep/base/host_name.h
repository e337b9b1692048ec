#pragma once

#include <string>

namespace lockstep {

/// The kernel's name of this host.
std::string host_name();

}  // namespace lockstep
