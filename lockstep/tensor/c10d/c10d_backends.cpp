#include "lockstep/tensor/c10d/c10d_backends.h"

#include "lockstep/base/error.h"
#include "lockstep/comm/backends.h"
#include "lockstep/tensor/c10d/gloo_group.h"

namespace lockstep {
namespace {

bool gloo_is_usable(const GroupSpec&, std::string* why_not) {
  return gloo_is_built_in(why_not);
}

// CUDA tensors go by way of host memory and any other back end: lockstep/tensor/staging.h.
bool nccl_is_built_in(std::string* why_not) {
#ifdef USE_C10D_NCCL  // of libtorch's own CMake configuration
  *why_not = "this libtorch has NCCL, but Lockstep makes no group of it";
#else
  *why_not = "this libtorch is built without NCCL";
#endif
  *why_not += "; the other back ends take CUDA tensors by way of host memory";
  return false;
}

bool nccl_is_usable(const GroupSpec&, std::string* why_not) {
  return nccl_is_built_in(why_not);
}

std::unique_ptr<GroupImpl> no_nccl_group(const GroupSpec&, Deadline) {
  std::string why_not;
  nccl_is_built_in(&why_not);
  throw Error(ErrorCode::kUnavailable, "back end c10d:nccl: " + why_not);
}

}  // namespace

bool register_c10d_backends() {
  static const bool done =
      register_backend({"c10d:gloo", "libtorch's own Gloo, over TCP also within a host",
                        gloo_is_built_in, gloo_is_usable, make_gloo_group}) &&
      register_backend({"c10d:nccl", "libtorch's own NCCL, between CUDA devices", nccl_is_built_in,
                        nccl_is_usable, no_nccl_group});
  return done;
}

}  // namespace lockstep
