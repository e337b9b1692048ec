#pragma once
// The device on which a rank trains, evaluates and predicts.

#include <c10/core/Device.h>

#include "lockstep/train/config/config.h"
#include "lockstep/world.h"

namespace lockstep::inline internal {

/// parallel.device: "cpu", "cuda" or "auto". "auto" is CUDA if libtorch sees a device, but the CPU
/// with parallel.virtual_ranks, whose bits are the CPU's. On CUDA it is World::device if a launcher
/// or DEVICE_ID `assigned` it, else system.device_id. `cuda_devices`: number of devices visible to
/// this process. Errors: kUnavailable without any device ("cuda"); kInvalidArgument with too few
/// for this rank.
c10::Device choose_compute_device(const Config& config, const World& world, bool assigned,
                                  int cuda_devices);

/// The same with the devices that libtorch sees; makes it this thread's current device. Call it
/// before the group is made, which uses `world.device`.
c10::Device take_compute_device(const Config& config, World& world);

}  // namespace lockstep::inline internal
