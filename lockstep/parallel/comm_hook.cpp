#include "lockstep/parallel/comm_hook.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/mul.h>
#include <c10/util/Type.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <typeinfo>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/parallel/block_scaled.h"
#include "lockstep/parallel/power_sgd.h"
#include "lockstep/tensor/collectives.h"
#include "lockstep/tensor/shared_tensor.h"

namespace lockstep {
namespace {

/// Memory of a bucket that a hook sends from, shared with the peers: made once per size.
class Staging {
 public:
  at::Tensor get(ProcessGroup& group, const GradientBucket& bucket, at::ScalarType dtype) {
    at::Tensor& tensor = tensors_[bucket.index];
    if (!tensor.defined() || tensor.numel() != bucket.flat.numel()) {
      const int64_t bytes = bucket.flat.numel() * static_cast<int64_t>(c10::elementSize(dtype));
      tensor = from_shared(group.allocate(bytes), 0, bucket.flat.sizes(), dtype);
    }
    return tensor;
  }

 private:
  std::map<int, at::Tensor> tensors_;  // by bucket
};

/// Gradients travel in a 16-bit type.
class RoundedAverage final : public CommHook {
 public:
  explicit RoundedAverage(at::ScalarType dtype) : dtype_(dtype) {}

  std::string describe() const override { return dtype_ == at::kHalf ? "fp16" : "bf16"; }

  std::function<void()> start(const GradientBucket& bucket, ProcessGroup& group) override {
    const at::Tensor flat = bucket.flat;
    if (flat.element_size() <= 2) {
      Work work = all_reduce(group, flat, ReduceOp::kAvg, {.async = true});
      return [work]() mutable { work.wait(); };
    }
    const at::NoGradGuard no_grad;
    const at::Tensor rounded = staging_.get(group, bucket, dtype_);
    rounded.copy_(flat.div_(group.size()));
    Work work = all_reduce(group, rounded, ReduceOp::kSum, {.async = true});
    return [work, flat, rounded]() mutable {
      const at::NoGradGuard no_grad_at_end;
      work.wait();
      flat.copy_(rounded);
    };
  }

 private:
  at::ScalarType dtype_;
  Staging staging_;
};

}  // namespace

std::string CommHook::describe() const {
  return c10::demangle(typeid(*this).name());
}

void CommHook::load_state(const HookState& state) {
  if (state.empty()) return;
  throw Error(ErrorCode::kCorrupt, fmt::format("state of hook {}, which has none: '{}'", describe(),
                                               state.begin()->first));
}

const std::vector<std::string>& comm_hook_names() {
  static const std::vector<std::string> names = {"none", "fp16", "bf16", "int8", "powersgd"};
  return names;
}

std::shared_ptr<CommHook> make_comm_hook(const std::string& name) {
  if (name == "none") return nullptr;
  if (name == "fp16") return std::make_shared<RoundedAverage>(at::kHalf);
  if (name == "bf16") return std::make_shared<RoundedAverage>(at::kBFloat16);
  if (name == "int8") return make_int8_hook();
  if (name == "powersgd") return make_power_sgd_hook();
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("there is no communication hook '{}'{} (known: {})", name,
                  did_you_mean(name, comm_hook_names()), fmt::join(comm_hook_names(), ", ")));
}

}  // namespace lockstep
