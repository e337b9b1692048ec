#include "lockstep/tensor/c10d/nccl_group.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAFunctions.h>
#include <fmt/format.h>

#include <atomic>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "lockstep/base/text.h"
#include "lockstep/comm/group/backends.h"
#include "lockstep/store/memory/memory_store.h"
#include "lockstep/tensor/c10d/adapters.h"
#include "lockstep/tensor/c10d/c10d_device_engine.h"
#include "lockstep/tensor/device/device_group.h"

namespace lockstep::inline internal {
namespace {

using ::c10d::ProcessGroupNCCL;

/// Its end is that of the communicators, by ncclCommAbort(): each rank by itself, when its calls
/// have ended. libtorch would do the same, with a warning. ncclCommDestroy() would wait for other
/// ranks.
class OwnedNccl {
 public:
  explicit OwnedNccl(c10::intrusive_ptr<ProcessGroupNCCL> nccl) : nccl_(std::move(nccl)) {}
  ~OwnedNccl() {
    try {
      abort();
    } catch (const std::exception&) {  // a device that failed; the calls have reported it
    }
  }
  OwnedNccl(const OwnedNccl&) = delete;
  OwnedNccl& operator=(const OwnedNccl&) = delete;

  void abort() {
    if (!aborted_.exchange(true)) nccl_->abort();
  }

 private:
  const c10::intrusive_ptr<ProcessGroupNCCL> nccl_;
  std::atomic<bool> aborted_ = false;
};

std::unique_ptr<DeviceEngine> make_engine(const GroupSpec& spec) {
  const auto options = ProcessGroupNCCL::Options::create();
  // Lockstep's timeout comes first; after its own, c10d's watchdog would end the process.
  options->timeout = spec.timeout + std::chrono::minutes(1);
  const auto ours = spec.store ? spec.store : make_memory_store();
  auto store = c10::make_intrusive<StoreForC10d>(ours, spec.name + "/nccl/", spec.timeout);
  auto nccl = c10::make_intrusive<ProcessGroupNCCL>(store, spec.rank, spec.size, options);
  const auto owned = std::make_shared<OwnedNccl>(nccl);
  return make_c10d_device_engine("NCCL", nccl, spec.size, {}, [owned] { owned->abort(); });
}

/// NCCL has no 16-bit integers.
std::optional<DType> reduced_by_nccl(DType dtype, ReduceOp) {
  return dtype == DType::kInt16 ? DType::kInt32 : dtype;
}

}  // namespace

bool nccl_is_built_in(std::string*) {
  return true;
}

std::string name_cuda_device(const World& world) {
  if (world.device < 0 || world.device >= c10::cuda::device_count()) return "";
  const auto& bytes = at::cuda::getDeviceProperties(world.device)->uuid.bytes;
  const auto* first = reinterpret_cast<const uint8_t*>(bytes);
  return fmt::format("cuda:{} GPU-{}", world.device, hex_digits({first, sizeof bytes}));
}

std::unique_ptr<GroupImpl> make_nccl_group(const GroupSpec& spec, Deadline deadline) {
  return make_device_group(spec, make_native_group(spec, deadline),
                           {.name = "NCCL",
                            .device = c10::Device(spec.device_name()),
                            .reduced_as = reduced_by_nccl,
                            .make = [spec](Deadline) { return make_engine(spec); }});
}

}  // namespace lockstep::inline internal
