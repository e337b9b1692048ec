#include "lockstep/parallel/reducer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "lockstep/base/error.h"

namespace lockstep {
Reducer::Reducer(ProcessGroup group, std::vector<NamedTensor> parameters, int64_t bucket_cap_bytes,
                 ShardFold* fold)
    : group_(std::move(group)),
      parameters_(std::move(parameters)),
      fold_(fold),
      limits_(bucket_limits(bucket_cap_bytes)),
      memory_(group_, parameters_) {
  const int count = static_cast<int>(parameters_.size());
  form_buckets(plan_buckets(memory_.specs(), reversed_order(count), limits_));
  for (int i = 0; i < count; ++i) {
    hooks_.emplace_back(parameters_[static_cast<size_t>(i)].tensor,
                        [this, i](const at::Tensor& arrived) { on_gradient(i, arrived); });
  }
}

Reducer::~Reducer() {
  memory_.serving(false);
  try {
    wait_for_launched();
  } catch (const std::exception&) {
    // Whoever runs the group has seen it already; what counts here is that nothing uses the memory.
  }
}

void Reducer::form_buckets(const std::vector<std::vector<int>>& plan) {
  memory_.form(plan);
  bucket_of_.resize(parameters_.size());
  for (size_t b = 0; b < plan.size(); ++b) {
    for (const int index : plan[b]) bucket_of_[static_cast<size_t>(index)] = static_cast<int>(b);
  }
}

void Reducer::form_buckets_in_ready_order() {
  std::vector<int32_t> order(ready_order_.begin(), ready_order_.end());
  ready_order_.clear();
  group_.broadcast(order.data(), static_cast<int64_t>(order.size()), DType::kInt32, 0).wait();
  const auto plan = plan_buckets(memory_.specs(), order, limits_);
  const bool same = std::equal(plan.begin(), plan.end(), buckets().begin(), buckets().end(),
                               [](const auto& a, const auto& b) { return a == b.gradients; });
  if (!same) form_buckets(plan);
}

void Reducer::begin_forward(bool synchronise) {
  if (phase_ == Phase::kBackward) {
    throw Error(ErrorCode::kInvalidArgument,
                "the last backward() ended early with an error: its gradients were not averaged "
                "and the ranks may be in different steps; start again from equal weights");
  }
  if (synchronise && !first_pass_ && !ready_order_.empty()) form_buckets_in_ready_order();
  memory_.serving(false);
  phase_ = synchronise ? Phase::kArmed : Phase::kLocal;
}

void Reducer::on_gradient(int index, const at::Tensor& arrived) {
  if (phase_ == Phase::kLocal) return;
  if (phase_ == Phase::kIdle) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a gradient of '{}' came without a forward() of the data parallel "
                            "model before it: call the model, not the module in it, and run "
                            "backward() once per forward(), or use no_sync()",
                            parameters_[static_cast<size_t>(index)].name));
  }
  if (phase_ == Phase::kArmed) start_pass();
  take_gradient(index, arrived);
  launch_full_buckets();
}

void Reducer::start_pass() {
  arrived_.assign(parameters_.size(), false);
  missing_.clear();
  for (const auto& layout : buckets())
    missing_.push_back(static_cast<int>(layout.gradients.size()));
  launched_ = 0;
  ready_order_.clear();
  at_end_of_backward([this] { finish_pass(); });
  phase_ = Phase::kBackward;
}

void Reducer::take_gradient(int index, const at::Tensor& arrived) {
  const auto i = static_cast<size_t>(index);
  const at::Tensor& grad = parameters_[i].tensor.grad();
  const bool sparse = grad.defined() && grad.layout() != at::kStrided;
  if (arrived_[i] || sparse) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("parameter '{}' got {}", parameters_[i].name,
                            sparse ? "a sparse gradient; only dense ones can be averaged"
                                   : "a second gradient in one backward pass"));
  }
  memory_.bring(index, arrived);
  if (fold_) fold_->add_sums_to(i);
  arrived_[i] = true;
  --missing_[static_cast<size_t>(bucket_of_[i])];
  if (first_pass_) ready_order_.push_back(index);
}

void Reducer::launch_full_buckets() {
  for (; launched_ < buckets().size() && missing_[launched_] == 0; ++launched_) {
    for (const int index : buckets()[launched_].placed) {
      in_flight_.push_back(parameters_[static_cast<size_t>(index)].tensor.grad());
    }
    memory_.launch(buckets()[launched_], fold_ ? ReduceOp::kSum : ReduceOp::kAvg, works_);
  }
}

void Reducer::finish_pass() {
  memory_.serving(false);
  const auto begin = std::chrono::steady_clock::now();
  wait_for_launched();
  phase_ = Phase::kIdle;
  if (launched_ < buckets().size()) throw_missing();
  for (size_t b = 0; fold_ && b < buckets().size(); ++b) {
    memory_.divide(buckets()[b], fold_->range().total);
  }
  first_pass_ = false;
  exposed_ms_ =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

void Reducer::wait_for_launched() {
  std::exception_ptr failure;
  for (Work& work : std::exchange(works_, {})) {
    try {
      work.wait();
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  }
  in_flight_.clear();
  if (failure) std::rethrow_exception(failure);
}

void Reducer::throw_missing() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!arrived_[i]) names.push_back(parameters_[i].name);
  }
  throw_without_gradient(names);
}

}  // namespace lockstep
