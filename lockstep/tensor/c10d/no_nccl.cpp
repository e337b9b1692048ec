// Replaces nccl_group.cpp if libtorch has no NCCL.

#include "lockstep/error.h"
#include "lockstep/tensor/c10d/nccl_group.h"

namespace lockstep::inline internal {

bool nccl_is_built_in(std::string* why_not) {
#ifdef USE_C10D_NCCL  // set by libtorch's own CMake configuration
  *why_not = "this libtorch has NCCL, but Lockstep was built without nccl.h, or it is before 2.3";
#else
  *why_not = "this libtorch is built without NCCL";
#endif
  *why_not += "; the other back ends take CUDA tensors by way of host memory";
  return false;
}

std::string name_cuda_device(const World&) {
  return "";
}

std::unique_ptr<GroupImpl> make_nccl_group(const GroupSpec&, Deadline) {
  std::string why_not;
  nccl_is_built_in(&why_not);
  throw Error(ErrorCode::kUnavailable, "back end c10d:nccl: " + why_not);
}

}  // namespace lockstep::inline internal
