#pragma once

#include <string>

namespace lockstep::inline internal {

/// The kernel's name of this host.
std::string host_name();

/// Changes with every boot and differs between machines. Empty: /proc does not have it.
std::string boot_id();

}  // namespace lockstep::inline internal
