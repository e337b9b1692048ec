#pragma once
// One of c10d's engines (NCCL; in tests Gloo) as a DeviceEngine.

#include <functional>
#include <memory>
#include <string>

#include "lockstep/tensor/device/device_engine.h"
#include "lockstep/torch/c10d_engine.h"

namespace lockstep {

using torch_compat::C10dEngine;

/// Of `size` ranks. `abort` ends the operations in progress, which then touch no memory.
std::unique_ptr<DeviceEngine> make_c10d_device_engine(std::string name,
                                                      c10::intrusive_ptr<C10dEngine> engine,
                                                      int size, std::function<void()> abort);

}  // namespace lockstep
