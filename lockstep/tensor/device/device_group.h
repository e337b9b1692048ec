#pragma once
// Collectives on a device's own memory by an engine for devices, beside a group for host memory:
// what the back ends "c10d:nccl" and "hccl" share.

#include <memory>

#include "lockstep/comm/group_impl.h"
#include "lockstep/tensor/device/device_engine.h"

namespace lockstep::inline internal {

/// Host memory is the part of `host`, with all its guarantees. Memory of the device (Waiting::
/// on_device) is the part of the engine, which `kind` makes, collectively, at the first call with
/// such memory. A call of the engine begins with an all_gather of 24 bytes in `host`. So errors
/// name ranks with another call, late ranks and dead ones as usual. The call has ended on the
/// device when it returns. Sums have the engine's order. The ops band, bor and bxor are an
/// all_gather and the device's own operations. The min and max of floats are those of integers in
/// the floats' order, so NaN wins. Averages are divided on the device. Point to point uses `host`
/// alone.
/// Errors: those of `host`; kInvalidArgument, before anything is sent, for a type that the engine
/// does not reduce; kTimeout if the engine does not end, which names this rank only, because all
/// had begun; kIo with the engine's text.
std::unique_ptr<GroupImpl> make_device_group(const GroupSpec& spec, std::unique_ptr<GroupImpl> host,
                                             EngineKind kind);

}  // namespace lockstep::inline internal
