#pragma once
// Choice of a process's accelerator among the visible ones.

#include <optional>
#include <string>

#include "lockstep/world/environment.h"

namespace lockstep::inline internal {

/// The devices that a variable makes visible to this process.
struct VisibleDevices {
  std::string variable;  ///< Empty: none is set, so all devices are visible.
  std::string value;
  int count = 0;  ///< Entries before the first invalid one, as CUDA counts.
};

/// The first of CUDA_VISIBLE_DEVICES, ASCEND_RT_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES,
/// ROCR_VISIBLE_DEVICES, ZE_AFFINITY_MASK that is set, even if empty.
VisibleDevices visible_devices(const Environment& environment);

struct DeviceChoice {
  int index = 0;        ///< Among the visible devices; -1: none is visible.
  std::string warning;  ///< Empty: none.
};

/// `given` (DEVICE_ID) if the launcher assigns one. Else the only visible device: srun
/// --gpus-per-task gives each task its own, which each sees as 0. Else the local rank, modulo the
/// number of visible devices with a warning. SLURM_STEP_GPUS is not used: its numbers count the
/// host's devices, not the visible ones.
DeviceChoice choose_device(const VisibleDevices& visible, int local_rank, std::optional<int> given);

}  // namespace lockstep::inline internal
