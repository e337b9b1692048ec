#include "tests/tensor/support/gloo_as_device.h"

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "lockstep/comm/group/backends.h"
#include "lockstep/tensor/c10d/adapters.h"

namespace lockstep::testing {
namespace {

std::unique_ptr<DeviceEngine> gloo_engine(const GroupSpec& spec) {
  using ::c10d::ProcessGroupGloo;
  ++engines_made;
  const auto options = ProcessGroupGloo::Options::create(spec.timeout);
  options->devices.push_back(ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  auto store = c10::make_intrusive<StoreForC10d>(spec.store, spec.name + "/engine/", spec.timeout);
  return make_c10d_device_engine(
      "Gloo", c10::make_intrusive<ProcessGroupGloo>(store, spec.rank, spec.size, options),
      spec.size, {.has_flat_gather = false, .on_host = true}, [] { ++engines_aborted; });
}

bool yes(std::string*) {
  return true;
}
bool always(const GroupSpec&, std::string*) {
  return true;
}

}  // namespace

std::optional<DType> reduced_by_gloo(DType dtype, ReduceOp) {
  if (dtype == DType::kInt16) return DType::kInt32;
  return dtype == DType::kBFloat16 ? DType::kFloat32 : dtype;
}

std::unique_ptr<GroupImpl> make_gloo_beside_native(const GroupSpec& spec, Deadline deadline) {
  return make_device_group(spec, make_native_group(spec, deadline),
                           {.name = "Gloo",
                            .device = at::kCPU,
                            .reduced_as = reduced_by_gloo,
                            .has_reduce_scatter = false,
                            .make = [spec](Deadline) { return gloo_engine(spec); }});
}

[[maybe_unused]] const bool gloo_as_device_is_registered =
    register_backend({"test:device", "", yes, always, make_gloo_beside_native});

}  // namespace lockstep::testing
