#include "lockstep/parallel/post_local_sgd.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/tensor/collectives.h"

namespace lockstep {

class PostLocalSgd::Hook final : public CommHook {
 public:
  Hook(ProcessGroup near, int64_t start_step) : near_(std::move(near)), start_step_(start_step) {}

  std::function<void()> start(const GradientBucket& bucket, ProcessGroup& group) override {
    ProcessGroup& whom = steps_ < start_step_ ? group : near_;
    if (bucket.last) ++steps_;
    if (whom.size() == 1) return [] {};
    Work work = all_reduce(whom, bucket.flat, ReduceOp::kAvg, {.async = true});
    return [work]() mutable { work.wait(); };
  }

  int64_t steps() const { return steps_; }

 private:
  ProcessGroup near_;
  int64_t start_step_;
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
      hook_(std::make_shared<Hook>(std::move(near), options.start_step)) {
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

void PostLocalSgd::average(const std::vector<at::Tensor>& parameters) {
  const at::NoGradGuard no_grad;
  for (const at::Tensor& parameter : parameters) {
    if (parameter.numel() == 0) continue;
    const at::Tensor value = parameter.detach();
    const at::Tensor flat = value.contiguous();  // `value` itself if it is contiguous
    all_reduce(all_, flat, ReduceOp::kAvg).wait();
    if (!flat.is_same(value)) value.copy_(flat);
  }
}

}  // namespace lockstep
