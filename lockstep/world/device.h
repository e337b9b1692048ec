#pragma once
// Which of the accelerators that a process sees is its own.

#include <optional>
#include <string>

#include "lockstep/world/environment.h"

namespace lockstep {

/// The devices that a variable lets this process see.
struct VisibleDevices {
  std::string variable;  ///< Empty: none is set, so the process sees all there are.
  std::string value;
  int count = 0;  ///< Entries before the first that cannot be one, as CUDA counts.
};

/// CUDA_VISIBLE_DEVICES, ASCEND_RT_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES,
/// ZE_AFFINITY_MASK: the first that is set, be it to nothing.
VisibleDevices visible_devices(const Environment& environment);

struct DeviceChoice {
  int index = 0;        ///< Among the visible devices; -1: none is visible.
  std::string warning;  ///< Empty: all is well.
};

/// `given` (DEVICE_ID) where the launcher assigns one. Else the only visible device (srun
/// --gpus-per-task gives each task its own, which each sees as 0), else the local rank, modulo the
/// number of visible devices with a warning. SLURM_STEP_GPUS is not looked at: its numbers are
/// those of the host, not of what the process may see.
DeviceChoice choose_device(const VisibleDevices& visible, int local_rank, std::optional<int> given);

}  // namespace lockstep
