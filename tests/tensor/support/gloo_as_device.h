#pragma once
// The CPU as a device, and Gloo instead of NCCL.

#include <atomic>
#include <memory>
#include <optional>

#include "lockstep/tensor/c10d/c10d_device_engine.h"
#include "lockstep/tensor/device/device_group.h"

namespace lockstep::testing {

/// Numbers of engines created and aborted.
inline std::atomic<int> engines_made = 0;
inline std::atomic<int> engines_aborted = 0;

std::optional<DType> reduced_by_gloo(DType dtype, ReduceOp op);

/// A group whose device() is "cpu": tensors there are Gloo's, other memory is native's. It is also
/// the back end "test:device".
std::unique_ptr<GroupImpl> make_gloo_beside_native(const GroupSpec& spec, Deadline deadline);

}  // namespace lockstep::testing
