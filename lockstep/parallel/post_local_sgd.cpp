#include "lockstep/comm_hook.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>

#include <map>
#include <utility>

#include "lockstep/collectives.h"
#include "lockstep/error.h"
#include "lockstep/parallel/comm_hook_state.h"

namespace lockstep {

class PostLocalSgd::Hook final : public CommHook {
 public:
  Hook(ProcessGroup near, const PostLocalSgdOptions& options)
      : near_(std::move(near)), options_(options) {}

  std::string describe() const override {
    return fmt::format("post-local SGD (start_step {}, period {})", options_.start_step,
                       options_.period);
  }

  std::function<void()> start(const GradientBucket& bucket, ProcessGroup& group) override {
    ProcessGroup& whom = steps_ < options_.start_step ? group : near_;
    if (bucket.last) ++steps_;
    if (whom.size() == 1) return [] {};
    Work work = all_reduce(whom, bucket.flat, ReduceOp::kAvg, {.async = true},
                           CallSite::here().of_bucket(bucket.index));
    return [work]() mutable { work.wait(); };
  }

  int64_t steps() const { return steps_; }

  std::optional<HookState> state() const override {
    return HookState{{"steps", at::full({1}, steps_, at::kLong)}};
  }
  void load_state(const HookState& state) override {
    LoadedBuckets loaded;
    loaded.load(state);
    const at::Tensor steps = at::full({1}, steps_, at::kLong);
    loaded.take("steps", steps);
    steps_ = steps.item<int64_t>();
  }

 private:
  ProcessGroup near_;
  PostLocalSgdOptions options_;
  int64_t steps_ = 0;
};

void PostLocalSgdOptions::validate() const {
  const auto check = [](int64_t value, const char* field) {
    if (value >= 1) return;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("post-local SGD: {} is {}; it must be at least 1", field, value));
  };
  check(start_step, "start_step");
  check(period, "period");
}

PostLocalSgd::PostLocalSgd(ProcessGroup all, ProcessGroup near, const PostLocalSgdOptions& options)
    : all_(std::move(all)),
      options_(options),
      hook_(std::make_shared<Hook>(std::move(near), options)) {
  options_.validate();
}

std::shared_ptr<CommHook> PostLocalSgd::hook() const {
  return hook_;
}

bool PostLocalSgd::after_step(const std::vector<at::Tensor>& parameters) {
  const int64_t local = hook_->steps() - options_.start_step;
  if (local <= 0 || local % options_.period != 0) return false;
  average(parameters);
  return true;
}

void PostLocalSgd::average(const std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_grad;
  std::map<at::ScalarType, std::vector<at::Tensor>> by_type;
  for (const at::Tensor& tensor : tensors) {
    by_type[tensor.scalar_type()].push_back(tensor.detach());
  }
  for (const auto& [type, values] : by_type) {
    std::vector<at::Tensor> flat;
    for (const at::Tensor& value : values) flat.push_back(value.contiguous());
    all_reduce_coalesced(all_, flat, ReduceOp::kAvg).wait();
    for (size_t i = 0; i < values.size(); ++i) {
      if (!flat[i].is_same(values[i])) values[i].copy_(flat[i]);
    }
  }
}

}  // namespace lockstep
