#include "lockstep/tensor/device_backends.h"

#include "lockstep/comm/device_name.h"
#include "lockstep/comm/group/backends.h"
#include "lockstep/tensor/c10d/gloo_group.h"
#include "lockstep/tensor/c10d/nccl_group.h"
#include "lockstep/tensor/hccl/hccl_group.h"

namespace lockstep::inline internal {
namespace {

bool gloo_is_usable(const GroupSpec&, std::string* why_not) {
  return gloo_is_built_in(why_not);
}

bool nccl_is_usable(const GroupSpec& spec, std::string* why_not) {
  if (!nccl_is_built_in(why_not)) return false;
  GroupSpec seen = spec;
  // No rendezvous took place: as in `lockstep doctor`.
  if (seen.devices.empty()) seen.devices = {name_cuda_device(World{})};
  return seen.has_a_device_each("CUDA", "cuda:", why_not);
}

bool hccl_is_usable(const GroupSpec& spec, std::string* why_not) {
  if (!hccl_is_loadable(why_not)) return false;
  GroupSpec seen = spec;
  if (seen.devices.empty()) seen.devices = {name_npu(World{})};
  return seen.has_a_device_each("Ascend", npu_prefix(), why_not);
}

std::string name_any_device(const World& world) {
  const auto cuda = name_cuda_device(world);
  return cuda.empty() ? name_npu(world) : cuda;
}

}  // namespace

bool register_device_backends() {
  static const bool done =
      register_backend({"c10d:gloo", "libtorch's own Gloo, over TCP also within a host",
                        gloo_is_built_in, gloo_is_usable, make_gloo_group}) &&
      register_backend({"c10d:nccl", "libtorch's own NCCL between CUDA devices, else native",
                        nccl_is_built_in, nccl_is_usable, make_nccl_group, /*for_devices=*/true,
                        /*one_order=*/true}) &&
      register_backend({"hccl", "Ascend's HCCL between NPUs, else native", hccl_is_loadable,
                        hccl_is_usable, make_hccl_group, /*for_devices=*/true,
                        /*one_order=*/true}) &&
      register_devices(name_any_device);
  return done;
}

}  // namespace lockstep::inline internal
