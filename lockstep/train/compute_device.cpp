#include "lockstep/train/compute_device.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>
#include <torch/cuda.h>

#include "lockstep/base/env.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

constexpr auto kOtherwise = "set parallel.device=cpu";

Error too_few(const World& world, int index, int cuda_devices) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("rank {} would compute on cuda:{}, but sees {} CUDA device{}: start fewer "
                      "ranks on a host, or {}",
                      world.rank, index, cuda_devices, cuda_devices == 1 ? "" : "s", kOtherwise)};
}

}  // namespace

c10::Device choose_compute_device(const Config& config, const World& world, bool assigned,
                                  int cuda_devices) {
  const auto& wish = config.parallel.device;
  const bool can = cuda_devices > 0 && config.parallel.virtual_ranks == 0;
  if (wish == "cpu" || (wish == "auto" && !can)) return c10::kCPU;
  if (cuda_devices == 0) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("parallel.device is cuda, but libtorch sees no CUDA device; {} or auto",
                            kOtherwise));
  }
  const int index = assigned ? world.device : static_cast<int>(config.system.device_id);
  if (index < 0 || index >= cuda_devices) throw too_few(world, index, cuda_devices);
  return {c10::kCUDA, static_cast<c10::DeviceIndex>(index)};
}

c10::Device take_compute_device(const Config& config, World& world) {
  const auto seen = torch::cuda::is_available() ? static_cast<int>(torch::cuda::device_count()) : 0;
  const bool assigned = world.size > 1 || env("DEVICE_ID");
  const auto device = choose_compute_device(config, world, assigned, seen);
  if (device.is_cpu()) return device;
  c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
  world.device = device.index();
  return device;
}

}  // namespace lockstep::inline internal
