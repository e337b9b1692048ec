#pragma once

#include "lockstep/launch/job/run_options.h"

namespace lockstep {

/// Accelerators that this process may open, by their device files below `root`: NVIDIA's, else
/// Ascend's, else AMD's. Their numbers may begin anywhere: a container is given some of a host's.
int count_accelerators(const std::string& root = "");

/// Cores this process may use, and accelerators, of which CUDA_VISIBLE_DEVICES and its like
/// (world/device.h) may hide some.
Machine this_machine(const Environment& environment);

}  // namespace lockstep
