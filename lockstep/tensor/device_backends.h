#pragma once
// The back ends that take tensors (libtorch's own, HCCL) in the table of back ends
// (lockstep/comm/group/backends.h).

namespace lockstep::inline internal {

/// Adds them, once per process. Done before main() in programs that use lockstep/collectives.h.
bool register_device_backends();

}  // namespace lockstep::inline internal
