#pragma once
// The CPU as a device, and Gloo instead of NCCL.

#include <atomic>
#include <memory>

#include "lockstep/tensor/c10d/device_group.h"

namespace lockstep::testing {

/// Numbers of engines created and aborted.
inline std::atomic<int> engines_made = 0;
inline std::atomic<int> engines_aborted = 0;

DType reduced_by_gloo(DType dtype);

/// A group whose device() is "cpu": tensors there are Gloo's, other memory is native's. It is also
/// the back end "test:device".
std::unique_ptr<GroupImpl> make_gloo_beside_native(const GroupSpec& spec, Deadline deadline);

}  // namespace lockstep::testing
