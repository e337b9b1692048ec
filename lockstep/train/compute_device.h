#pragma once
// On which device a rank trains, evaluates and predicts.

#include <c10/core/Device.h>

#include "lockstep/train/config/config.h"
#include "lockstep/world.h"

namespace lockstep {

/// parallel.device: "cpu"; "cuda"; "auto", which is CUDA where libtorch sees a device, but not with
/// parallel.virtual_ranks, whose bits are the CPU's. On CUDA it is World::device where that was
/// `assigned`, by a launcher or DEVICE_ID, else system.device_id. `cuda_devices`: that this process
/// may see. Errors: kUnavailable where there is none ("cuda"); kInvalidArgument where there are too
/// few for this rank.
c10::Device choose_compute_device(const Config& config, const World& world, bool assigned,
                                  int cuda_devices);

/// The same with what libtorch sees; it is this thread's current device from now on. To be called
/// before the group is made, which goes by `world.device`.
c10::Device take_compute_device(const Config& config, World& world);

}  // namespace lockstep
