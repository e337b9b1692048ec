#pragma once
// Collectives on a device's own memory by one of c10d's engines, beside a group for host memory:
// the back end "c10d:nccl" without NCCL.

#include <c10/core/Device.h>

#include <functional>
#include <memory>
#include <string>

#include "lockstep/comm/group_impl.h"
#include "lockstep/torch/c10d_engine.h"

namespace lockstep {

using torch_compat::C10dEngine;

/// An engine between devices, and its abilities.
struct DeviceEngine {
  std::string name;  ///< "NCCL".
  c10::Device device;
  c10::intrusive_ptr<C10dEngine> engine;
  /// The type in which the engine reduces a type of parts_of().
  DType (*reduced_as)(DType dtype) = nullptr;
  bool has_reduce_scatter = true;  ///< If false, it is an all_reduce of a copy.
  /// Ends operations in progress, which then touch no memory; after an error.
  std::function<void()> abort = [] {};
};

/// Host memory is the part of `host`, with all its guarantees. Memory of `device` (Waiting::
/// on_device) is the part of the engine, which `make_engine` makes, collectively, at the first call
/// with such memory. A call of the engine begins with an all_gather of 24 bytes in `host`. So
/// errors name ranks with another call, late ranks and dead ones as usual. The call has ended on
/// the device when it returns. Sums have the engine's order. The ops band, bor and bxor are an
/// all_gather and the device's own operations. The calls gather, scatter, all_to_all, all_gatherv
/// and all_to_allv copy once before and once after on the device. Point to point uses `host` alone.
/// Errors: those of `host`; kTimeout if the engine does not end, which names this rank only,
/// because all had begun; kIo with the engine's text.
std::unique_ptr<GroupImpl> make_device_group(const GroupSpec& spec, std::unique_ptr<GroupImpl> host,
                                             std::string device,
                                             std::function<DeviceEngine()> make_engine);

}  // namespace lockstep
