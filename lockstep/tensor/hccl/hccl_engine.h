#pragma once
// Ascend's HCCL as a DeviceEngine.

#include <c10/core/Device.h>

#include "lockstep/comm/group_impl.h"
#include "lockstep/tensor/device/device_engine.h"
#include "lockstep/tensor/hccl/interface.h"

namespace lockstep::hccl {

/// HCCL between the ranks of `spec`, of which this one has NPU `index`. Tensors lie on `device`.
///
/// Rank 0 makes the root info, and the others read it in the store. Operations run on a stream of
/// the engine's own: a call waits for the current stream of `device`, and has ended on the device
/// when it returns. An exchange is pairs of HcclSend and HcclRecv, in an order in which they cannot
/// wait for each other in a circle.
///
/// What is reduced as what (Ascend's "HCCL" guide, all_reduce and reduce_scatter):
///   Atlas training series (Ascend910A)     float32, float16, int32
///   Atlas A2 and later (Ascend910B and on) also bfloat16, but its products as float32
///   both                                   bool, int8, uint8 and int16 as int32
///   neither                                int64, float64, complex128
/// int8 is widened because the guide does not promise that its sums wrap.
EngineKind engine_kind(const Functions& functions, const GroupSpec& spec, int index,
                       c10::Device device);

}  // namespace lockstep::hccl
