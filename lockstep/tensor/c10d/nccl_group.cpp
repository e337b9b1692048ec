#include "lockstep/tensor/c10d/nccl_group.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAFunctions.h>
#include <fmt/format.h>

#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "lockstep/comm/backends.h"
#include "lockstep/store/memory/memory_store.h"
#include "lockstep/tensor/c10d/adapters.h"
#include "lockstep/tensor/c10d/device_group.h"

namespace lockstep {
namespace {

using ::c10d::ProcessGroupNCCL;

/// NCCL has no 16-bit integers.
DType reduced_by_nccl(DType dtype) {
  return dtype == DType::kInt16 ? DType::kInt32 : dtype;
}

DeviceEngine make_engine(const GroupSpec& spec, const c10::Device device) {
  const auto options = ProcessGroupNCCL::Options::create();
  // Lockstep's timeout comes first; after its own, c10d's watchdog would end the process.
  options->timeout = spec.timeout + std::chrono::minutes(1);
  const auto ours = spec.store ? spec.store : make_memory_store();
  auto store = c10::make_intrusive<StoreForC10d>(ours, spec.name + "/nccl/", spec.timeout);
  auto nccl = c10::make_intrusive<ProcessGroupNCCL>(store, spec.rank, spec.size, options);
  return {.name = "NCCL",
          .device = device,
          .engine = nccl,
          .reduced_as = reduced_by_nccl,
          .abort = [nccl] { nccl->abort(); }};
}

/// "cuda:1" of "cuda:1 GPU-0a1b".
std::string name_here(const GroupSpec& spec) {
  const auto& device = spec.devices.at(static_cast<size_t>(spec.rank));
  return device.substr(0, device.find(' '));
}

}  // namespace

bool nccl_is_built_in(std::string*) {
  return true;
}

std::string name_cuda_device(const World& world) {
  if (world.device < 0 || world.device >= c10::cuda::device_count()) return "";
  const auto& bytes = at::cuda::getDeviceProperties(world.device)->uuid.bytes;
  std::string uuid;
  for (const char byte : bytes) uuid += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return fmt::format("cuda:{} GPU-{}", world.device, uuid);
}

std::unique_ptr<GroupImpl> make_nccl_group(const GroupSpec& spec, Deadline deadline) {
  const auto device = name_here(spec);
  return make_device_group(spec, make_native_group(spec, deadline), device,
                           [spec, device] { return make_engine(spec, c10::Device(device)); });
}

}  // namespace lockstep
