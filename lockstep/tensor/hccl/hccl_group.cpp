#include "lockstep/tensor/hccl/hccl_group.h"

#include <c10/core/Device.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <fmt/format.h>

#include "lockstep/base/env.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/group/backends.h"
#include "lockstep/tensor/device/device_group.h"
#include "lockstep/tensor/hccl/hccl_engine.h"
#include "lockstep/tensor/hccl/library.h"

namespace lockstep::inline internal {
namespace {

c10::Device npu(int index) {
  return {c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(index)};
}

/// The number on the host of visible NPU `index`.
std::string number_on_host(int index) {
  const auto visible = env("ASCEND_RT_VISIBLE_DEVICES");
  if (!visible) return std::to_string(index);
  const auto numbers = split(*visible, ',');
  const auto at = static_cast<size_t>(index);
  return at < numbers.size() ? numbers[at] : std::to_string(index);
}

}  // namespace

bool hccl_is_loadable(std::string* why_not) {
  if (hccl::load_library(why_not) == nullptr) return false;
  if (c10::impl::hasDeviceGuardImpl(c10::DeviceType::PrivateUse1)) return true;
  *why_not = "libtorch has no NPUs before torch_npu's library (libtorch_npu.so) is loaded";
  return false;
}

std::string npu_prefix() {
  const auto name = npu(0).str();
  return name.substr(0, name.find(':') + 1);
}

std::string name_npu(const World& world) {
  std::string why_not;
  if (world.device < 0 || !hccl_is_loadable(&why_not)) return "";
  uint32_t count = 0;
  if (hccl::load_library(&why_not)->aclrtGetDeviceCount(&count) != hccl::kSuccess) return "";
  if (world.device >= static_cast<int>(count)) return "";
  return fmt::format("{} {}/{}", npu(world.device).str(), world.host_id,
                     number_on_host(world.device));
}

std::unique_ptr<GroupImpl> make_hccl_group(const GroupSpec& spec, Deadline deadline) {
  std::string why_not;
  const auto* const functions = hccl::load_library(&why_not);
  const auto name = spec.device_name();
  const int index =
      static_cast<int>(parse_int(name.substr(name.find(':') + 1), 0, 127, "the number of an NPU"));
  return make_device_group(spec, make_native_group(spec, deadline),
                           hccl::engine_kind(*functions, spec, index, npu(index)));
}

}  // namespace lockstep::inline internal
