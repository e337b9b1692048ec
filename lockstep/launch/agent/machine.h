#pragma once

#include "lockstep/launch/agent/run_options.h"

namespace lockstep {

/// Cores this process may run on, and NVIDIA devices, of which CUDA_VISIBLE_DEVICES may hide some.
Machine this_machine(const Environment& environment);

/// The kernel's name of this host.
std::string host_name();

}  // namespace lockstep
