#pragma once
// One of c10d's engines (NCCL; in tests Gloo) as a DeviceEngine.

#include <functional>
#include <memory>
#include <string>

#include "lockstep/tensor/device/device_engine.h"
#include "lockstep/torch/c10d_engine.h"

namespace lockstep::inline internal {

using torch_compat::C10dEngine;

struct C10dAbilities {
  bool has_flat_gather = true;  ///< _allgather_base(); else lists of tensors, one a rank.
  bool on_host = false;         ///< Its device is the CPU: Work::wait() waits for the result.
};

/// Of `size` ranks. `abort` ends the operations in progress, which then touch no memory.
std::unique_ptr<DeviceEngine> make_c10d_device_engine(std::string name,
                                                      c10::intrusive_ptr<C10dEngine> engine,
                                                      int size, const C10dAbilities& abilities,
                                                      std::function<void()> abort);

}  // namespace lockstep::inline internal
