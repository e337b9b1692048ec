#pragma once
// The back end "c10d:nccl": collectives on CUDA tensors by libtorch's own ProcessGroupNCCL, and
// native for host memory (device_group.h). "auto" selects it if every rank has a CUDA device of its
// own.
//
// It is built in if libtorch is 2.3 or later with CUDA and NCCL, and nccl.h is found. NCCL takes
// one rank per device; the device of a rank is World::device. Differences to native on CUDA
// tensors: sums have NCCL's order, and float16 and bfloat16 are rounded as NCCL does it. Either all
// ranks' tensors are on their devices, or none. int16 is reduced as int32; premul_sum goes through
// the host. A rank that dies in the middle of a collective is not named: the others wait until
// their deadline. Compiled with libtorch 2.14.1 of PyPI for CUDA 13.0, and NCCL 2.30.7; it has not
// run on a device yet.

#include <memory>
#include <string>

#include "lockstep/comm/group_impl.h"
#include "lockstep/deadline.h"
#include "lockstep/world.h"

namespace lockstep::inline internal {

/// Errors: kUnavailable if it is not built in.
std::unique_ptr<GroupImpl> make_nccl_group(const GroupSpec& spec, Deadline deadline);

/// True if this was built with NCCL. If not, `why_not` receives the reason.
bool nccl_is_built_in(std::string* why_not);

/// "cuda:1 GPU-0a1b...": the text for GroupSpec::devices; empty if this rank has none.
std::string name_cuda_device(const World& world);

}  // namespace lockstep::inline internal
