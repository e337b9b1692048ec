// The end of a backward pass in the reducer: agreement on missing gradients, then the wait for all
// results and their delivery.

#include <fmt/format.h>

#include <exception>

#include "lockstep/base/log.h"
#include "lockstep/error.h"
#include "lockstep/parallel/module_state.h"
#include "lockstep/parallel/reducer.h"

namespace lockstep::inline internal {
namespace {

using Clock = std::chrono::steady_clock;

/// Sent by a rank that only shadows. Below any count and any negated one.
constexpr int32_t kNoCount = -(1 << 30);

}  // namespace

void Reducer::finish_pass() {
  memory_.serving(false);
  if (gradients_ == 0 &&
      !shadowing_) {  // a pass of autograd::grad(), which needs no gradients here
    enter(Phase::kArmed);
    return;
  }
  clock_.computed(Clock::now());
  const bool learning = first_pass_ && options_.graph == GraphUse::kStatic;
  if (!shadowing_ && !learning && options_.graph != GraphUse::kFindUnused &&
      pending_.size() < buckets().size()) {
    if (subtrees_) subtrees_->abandon();  // other ranks may not take part in its next steps
    wait_for_pending();
    enter(Phase::kIdle);
    may_be_ahead_ = true;
    throw_missing();
  }
  reduce_rest();
  for (size_t b = 0; local_reduction_ && b < buckets().size(); ++b) {
    memory_.divide(buckets()[b], local_reduction_->range().total);
  }
  if (scale_ != 1) memory_.scale(scale_);
  memory_.deliver();
  memory_.release();
  used_.assign(parameters_.size(), false);
  enter(Phase::kIdle);
  if (first_pass_) learn_order();
  first_pass_ = false;
  clock_.end(Clock::now());
  timings_ = clock_.timings();
  timings_.copied = static_cast<int>(memory_.copied().size());
  warn_of_copies();
  if (options_.measure_wait) measure_wait();
  if (options_.hook) options_.hook->after_step(timings_.backward, group_);
  last_end_ = Clock::now();
}

/// Stages gradients that came and waited, contributes the rest, and applies the ranks' agreement on
/// it.
void Reducer::reduce_rest() {
  if (options_.graph == GraphUse::kAll && !shadowing_) return wait_for_pending();
  std::vector<int> contributed;
  for (int index = 0; index < std::ssize(parameters_); ++index) {
    const auto i = static_cast<size_t>(index);
    if (ready_[i] || bucket_of_[i] < 0) continue;
    if (count_[i] > 0) {
      memory_.stage(index, {});
    } else {
      memory_.contribute_without_gradient(index);
      contributed.push_back(index);
    }
    mark_ready(index);
  }
  launch_full_buckets();
  std::vector<bool> used(parameters_.size(), true);
  if (options_.graph == GraphUse::kFindUnused) used = agree_on_use();
  if (options_.graph == GraphUse::kStatic && first_pass_) used = agree_on_counts();
  wait_for_pending();
  for (const int index : contributed) {
    used[static_cast<size_t>(index)] ? memory_.accept(index) : memory_.decline(index);
  }
}

/// By parameter: some rank used it. A rank that shadows counts a .grad that the others keep as
/// used, so that its optimizer steps the same parameters as theirs.
std::vector<bool> Reducer::agree_on_use() {
  constexpr uint8_t kKept = 1, kUsed = 2;
  std::vector<uint8_t> use(parameters_.size());
  for (size_t i = 0; i < use.size(); ++i) {
    const bool keeps = !shadowing_ && parameters_[i].tensor.grad().defined();
    use[i] = used_[i] ? kUsed : keeps ? kKept : 0;
  }
  group_.all_reduce(use.data(), std::ssize(use), DType::kUint8, ReduceOp::kMax).wait();
  std::vector<bool> used;
  for (const uint8_t each : use) used.push_back(each >= (shadowing_ ? kKept : kUsed));
  return used;
}

std::vector<bool> Reducer::agree_on_counts() {
  const size_t n = parameters_.size();
  std::vector<int32_t> bounds(2 * n, kNoCount);  // the most, then the negated least
  for (size_t i = 0; i < n && !shadowing_; ++i) {
    bounds[i] = count_[i];
    bounds[n + i] = -count_[i];
  }
  group_.all_reduce(bounds.data(), std::ssize(bounds), DType::kInt32, ReduceOp::kMax).wait();
  for (size_t i = 0; i < n; ++i) {
    wanted_[i] = bounds[i];
    if (bounds[i] == -bounds[n + i]) continue;
    wait_for_pending();
    enter(Phase::kIdle);
    throw Error(ErrorCode::kMismatch,
                fmt::format("static_graph is on, but in the first step parameter '{}' got {} "
                            "gradients on one rank and {} on another",
                            parameters_[i].name, -bounds[n + i], bounds[i]));
  }
  return {wanted_.begin(), wanted_.end()};
}

/// The order of the buckets from the second pass on: gradients in the order of arrival, then those
/// that did not come. With a static graph the latter never come.
void Reducer::learn_order() {
  std::vector<bool> listed(parameters_.size());
  for (const int index : ready_order_) listed[static_cast<size_t>(index)] = true;
  for (const int index : reversed_order(static_cast<int>(parameters_.size()))) {
    const auto i = static_cast<size_t>(index);
    if (!listed[i] && wanted_[i] > 0) ready_order_.push_back(index);
  }
}

void Reducer::wait_for_pending() {
  std::exception_ptr failure;
  for (size_t bucket = 0; bucket < pending_.size(); ++bucket) {
    try {
      for (Work& work : pending_[bucket].works) work.wait();
      if (pending_[bucket].finish) pending_[bucket].finish();
    } catch (const Error& error) {
      if (failure) continue;
      failure = std::make_exception_ptr(with_names(error, bucket));
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  }
  pending_.clear();
  if (failure) std::rethrow_exception(failure);
}

void Reducer::measure_wait() {
  const double busy = milliseconds(clock_.computed_at() - last_end_);
  double longest = busy;
  group_.all_reduce(&longest, 1, DType::kFloat64, ReduceOp::kMax).wait();
  timings_.slowest_wait = longest - busy;
}

/// Warns once, if it seems to happen in every step.
void Reducer::warn_of_copies() {
  constexpr int kEnough = 3;
  if (passes_with_copies_ == kEnough || memory_.of_program().empty()) {
    if (passes_with_copies_ < kEnough) passes_with_copies_ = 0;
    return;
  }
  if (++passes_with_copies_ < kEnough || group_.rank() != 0) return;
  std::vector<std::string> names;
  for (const int index : memory_.of_program()) names.push_back(name_of(index));
  log_warn(
      fmt::format("large gradients are copied in each step, which takes time: gradients of {}. "
                  "Their .grad is memory of the program's own",
                  name_list(names)));
}

void Reducer::throw_missing() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (bucket_of_[i] >= 0 && !ready_[i]) names.push_back(parameters_[i].name);
  }
  if (options_.graph == GraphUse::kStatic) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("fewer gradients than in the first step came for {}, but static_graph "
                            "is on",
                            name_list(names)));
  }
  throw_without_gradient(names, local_reduction_ != nullptr);
}

}  // namespace lockstep::inline internal
