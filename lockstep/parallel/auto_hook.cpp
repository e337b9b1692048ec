#include "lockstep/parallel/auto_hook.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "lockstep/base/log.h"
#include "lockstep/collectives.h"
#include "lockstep/comm/group/backend_autotuning.h"
#include "lockstep/error.h"
#include "lockstep/parallel/pass_clock.h"

namespace lockstep::inline internal {
namespace {

constexpr const char* kChoiceKey = "choice";

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::string consequence(AutoHook::Choice choice) {
  return choice == AutoHook::Choice::kBf16
             ? "bf16: from here on gradients are rounded to bfloat16 on their way"
             : "none: gradients travel as they are";
}

}  // namespace

void HookTrial::record(double milliseconds) {
  const bool counted = step_ > 0 && (step_ - 1) % (1 + kCountedSteps) != 0;
  if (counted) counted_[rounded() ? 1 : 0].push_back(milliseconds);
  ++step_;
}

std::vector<double> HookTrial::medians() const {
  return {median_of(counted_[0]), median_of(counted_[1])};
}

AutoHook::AutoHook() : rounded_(make_comm_hook("bf16")) {}

bool AutoHook::is_noop() const {
  return choice_ == Choice::kOpen ? !trial_.rounded() : choice_ == Choice::kNone;
}

std::function<void()> AutoHook::start(const GradientBucket& bucket, ProcessGroup& group) {
  if (choice_ != Choice::kOpen) return rounded_->start(bucket, group);
  const at::NoGradGuard no_grad;
  if (bucket.index == 0) copies_.clear();  // of a failed pass
  copies_.push_back({bucket.flat, bucket.flat.clone()});
  return [this, last = bucket.last, finish = rounded_->start(bucket, group), &group] {
    finish();
    if (last) average_copies(group);
  };
}

/// Runs only when nothing else is in progress, so that its time can be separated.
void AutoHook::average_copies(ProcessGroup& group) {
  const at::NoGradGuard no_grad;
  const auto begin = std::chrono::steady_clock::now();
  std::vector<Work> works;
  for (const Copy& copy : copies_) {
    copy.flat.copy_(copy.gradients);
    works.push_back(all_reduce(group, copy.flat, ReduceOp::kAvg, {.async = true},
                               CallSite::here().of_bucket(static_cast<int>(works.size()))));
  }
  for (Work& work : works) work.wait();
  copies_.clear();
  second_ms_ = milliseconds(std::chrono::steady_clock::now() - begin);
}

void AutoHook::after_step(double backward_ms, ProcessGroup& group) {
  if (std::exchange(loaded_, false) && group.rank() == 0) {
    log_info(fmt::format("comm_hook auto, as in the checkpoint, {}", consequence(choice_)));
  }
  if (choice_ != Choice::kOpen) return;
  trial_.record(time_that_counts(backward_ms));
  second_ms_ = 0;
  if (trial_.over()) choose(group);
}

void AutoHook::choose(ProcessGroup& group) {
  std::vector<double> slowest = trial_.medians();
  group.all_reduce(slowest.data(), std::ssize(slowest), DType::kFloat64, ReduceOp::kMax).wait();
  choice_ = fastest(slowest) == 0 ? Choice::kNone : Choice::kBf16;
  if (group.rank() != 0) return;
  log_info(
      fmt::format("comm_hook auto takes {} (backward() of the slowest rank: none {:.2f} ms, "
                  "bf16 {:.2f} ms)",
                  consequence(choice_), slowest[0], slowest[1]));
}

void AutoHook::buckets_changed(int first) {
  rounded_->buckets_changed(first);
}

std::optional<HookState> AutoHook::state() const {
  return HookState{{kChoiceKey, at::full({1}, static_cast<int64_t>(choice_), at::kLong)}};
}

void AutoHook::load_state(const HookState& state) {
  const auto found = state.find(kChoiceKey);
  const bool fits = found != state.end() && found->second.scalar_type() == at::kLong &&
                    found->second.numel() == 1;
  const int64_t choice = fits ? found->second.item<int64_t>() : -1;
  if (choice < 0 || choice > static_cast<int64_t>(Choice::kBf16)) {
    throw Error(ErrorCode::kCorrupt,
                "state of comm_hook auto has no 'choice' that is a whole number from 0 to 2");
  }
  choice_ = static_cast<Choice>(choice);
  loaded_ = choice_ != Choice::kOpen;
}

}  // namespace lockstep::inline internal
