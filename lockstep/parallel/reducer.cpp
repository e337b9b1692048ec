#include "lockstep/parallel/reducer.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <map>
#include <utility>

#include "lockstep/error.h"
#include "lockstep/parallel/module_state.h"
#include "lockstep/tensor/tensor_arena.h"

namespace lockstep::inline internal {
namespace {

using Clock = std::chrono::steady_clock;

/// Null if all_reduce() adds in the order of the tree over the virtual ranks.
std::unique_ptr<SubtreeReduction> make_subtree_reduction(const ProcessGroup& group,
                                                         const LocalReduction* local_reduction,
                                                         std::span<const GradientSpec> specs) {
  if (!local_reduction) return nullptr;
  const VirtualRankRange& range = local_reduction->range();
  if (ranks_add_as_tree(range.total, group.size())) return nullptr;
  int64_t bytes = 0;
  for (const GradientSpec& spec : specs) bytes += spec.bytes() + kGradientAlignment;
  return std::make_unique<SubtreeReduction>(group, range, bytes);
}

}  // namespace

Reducer::Reducer(ProcessGroup group, std::vector<NamedTensor> parameters,
                 const ReducerOptions& options, LocalReduction* local_reduction)
    : group_(std::move(group)),
      parameters_(std::move(parameters)),
      options_(options),
      local_reduction_(local_reduction),
      announced_(parameters_),
      limits_(bucket_limits(options.bucket_cap_bytes)),
      memory_(group_, parameters_),
      subtrees_(make_subtree_reduction(group_, local_reduction_, memory_.specs())),
      hooked_(options.hook && !options.hook->is_noop()),
      order_(reversed_order(static_cast<int>(parameters_.size()))),
      used_(parameters_.size()),
      wanted_(parameters_.size(), 1),
      last_end_(Clock::now()),
      self_(std::make_shared<Reducer*>(this)) {
  const int count = static_cast<int>(parameters_.size());
  form_buckets(plan_for(order_));
  for (int i = 0; i < count; ++i) {
    hooks_.emplace_back(parameters_[static_cast<size_t>(i)].tensor,
                        [this, i](const at::Tensor& arrived) { on_gradient(i, arrived); });
  }
}

Reducer::~Reducer() {
  memory_.serving(false);
  if (subtrees_) subtrees_->abandon();
  try {
    wait_for_pending();
  } catch (const std::exception&) {
    // The group has reported the error already; here it only matters that nothing uses the memory
    // any more.
  }
}

/// A gradient that would fill a bucket goes to a hook from the place of its computation, because it
/// is alone.
std::vector<std::vector<int>> Reducer::plan_for(std::span<const int> order) const {
  const int64_t fills = std::max(options_.bucket_cap_bytes, TensorArena::kMinBytes);
  return plan_buckets(memory_.specs(), order, limits_,
                      hooked_ ? fills : std::numeric_limits<int64_t>::max());
}

void Reducer::form_buckets(const std::vector<std::vector<int>>& plan) {
  memory_.form(plan, hooked_);
  bucket_of_.assign(parameters_.size(), -1);
  for (size_t b = 0; b < plan.size(); ++b) {
    for (const int index : plan[b]) bucket_of_[static_cast<size_t>(index)] = static_cast<int>(b);
  }
}

void Reducer::form_buckets_in_ready_order(int root) {
  std::vector<int32_t> order(ready_order_.begin(), ready_order_.end());
  ready_order_.clear();
  group_.broadcast(order.data(), static_cast<int64_t>(order.size()), DType::kInt32, root).wait();
  order_.assign(order.begin(), order.end());
  const auto plan = plan_for(order_);
  const auto last = std::min(plan.size(), buckets().size());
  size_t first = 0;  // that differs
  while (first < last && plan[first] == buckets()[first].gradients) ++first;
  if (first == plan.size() && first == buckets().size()) return;
  form_buckets(plan);
  if (options_.hook) options_.hook->buckets_changed(static_cast<int>(first));
}

/// Sends this step's buckets through the hook unless the hook is a no-op now.
void Reducer::follow_hook() {
  if (!options_.hook || hooked_ == !options_.hook->is_noop()) return;
  hooked_ = !hooked_;
  form_buckets(plan_for(order_));
  options_.hook->buckets_changed(0);
}

BucketNames Reducer::settled_buckets() {
  if (first_pass_) return {};
  if (!ready_order_.empty()) form_buckets_in_ready_order(0);
  BucketNames names;
  for (size_t bucket = 0; bucket < buckets().size(); ++bucket) {
    names.push_back(bucket_names(bucket));
  }
  return names;
}

bool Reducer::start_with(const BucketNames& names) {
  std::map<std::string, int> rest;  // by name
  for (int i = 0; i < std::ssize(parameters_); ++i) rest[name_of(i)] = i;
  std::vector<std::vector<int>> plan;
  for (const auto& bucket : names) {
    plan.emplace_back();
    for (const auto& name : bucket) {
      const auto node = rest.extract(name);
      if (node.empty()) return false;
      plan.back().push_back(node.mapped());
      const auto kind_of = [&](int index) {
        return memory_.specs()[static_cast<size_t>(index)].kind;
      };
      if (kind_of(plan.back().front()) != kind_of(node.mapped())) return false;
    }
  }
  std::vector<int> others;
  for (const auto& [name, index] : rest) others.push_back(index);
  for (auto& bucket : plan_for(others)) plan.push_back(bucket);
  order_.clear();
  for (const auto& bucket : plan) order_.insert(order_.end(), bucket.begin(), bucket.end());
  form_buckets(plan);
  first_pass_ = options_.graph == GraphUse::kStatic;
  return true;
}

void Reducer::begin_forward(bool synchronise, int order_root) {
  if (phase_ == Phase::kBackward) {
    throw Error(ErrorCode::kInvalidArgument,
                "the last backward() ended early with an error: its gradients were not averaged "
                "and the ranks may be in different steps; start again from equal weights");
  }
  if (synchronise && may_be_ahead_) {
    // Ranks that got all gradients wait in that pass, and would take this one for it. The barrier
    // tells all of them.
    group_.barrier();
    may_be_ahead_ = false;
  }
  if (synchronise && !first_pass_ && !ready_order_.empty()) {
    form_buckets_in_ready_order(order_root);
  }
  if (synchronise) follow_hook();
  memory_.serving(false);
  enter(synchronise ? Phase::kArmed : Phase::kLocal);
}

void Reducer::enter(Phase phase) {
  phase_ = phase;
  announced_.set(phase == Phase::kArmed || phase == Phase::kBackward);
}

/// Blocks are given out only once backward reaches the model, not for tensors that the program
/// computes before. If no output can report that, they are given out at once.
void Reducer::end_forward(const std::vector<at::Tensor>& outputs) {
  bool told = false;
  for (const at::Tensor& output : outputs) {
    told |= at_begin_of_backward(output, [self = std::weak_ptr<Reducer*>(self_)] {
      if (const auto reducer = self.lock()) (*reducer)->on_backward();
    });
  }
  if (!told) memory_.serving(true);
}

void Reducer::on_backward() {
  const MutexLock lock(hooks_mutex_);
  if (phase_ == Phase::kArmed) start_pass();
  if (phase_ != Phase::kLocal) return;
  memory_.serving(true);
  at_end_of_backward([self = std::weak_ptr<Reducer*>(self_)] {
    if (const auto reducer = self.lock()) (*reducer)->memory_.serving(false);
  });
}

/// True if the gradient is for another reducer only. Throws if it is for both.
bool Reducer::is_of_another_pass(int index) const {
  if (phase_ == Phase::kLocal || !announced_.is_others_too(static_cast<size_t>(index))) {
    return false;
  }
  if (phase_ == Phase::kIdle) return true;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("parameter '{}' is in the passes of two data parallel models at once, "
                          "which would average its gradient twice: make one model of both modules, "
                          "or run backward() of one before forward() of the other, and destroy a "
                          "model that is not used any more",
                          name_of(index)));
}

void Reducer::on_gradient(int index, const at::Tensor& arrived) {
  const MutexLock lock(hooks_mutex_);
  if (is_of_another_pass(index)) return;
  used_[static_cast<size_t>(index)] = true;
  if (phase_ == Phase::kIdle) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a gradient of '{}' came without a forward() of the data parallel "
                            "model before it: call the model, not the module in it, and run "
                            "backward() once per forward(), or use no_sync()",
                            name_of(index)));
  }
  if (phase_ == Phase::kArmed) start_pass();
  refuse_sparse_gradient(parameters_[static_cast<size_t>(index)]);
  if (phase_ == Phase::kLocal) return memory_.saw(index, arrived);
  take_gradient(index, arrived);
  launch_full_buckets();
  clock_.gradient(Clock::now(), in_flight());
}

void Reducer::start_pass() {
  reset_pass();
  memory_.serving(true);
  at_end_of_backward([this] { finish_pass(); });
}

void Reducer::reset_pass() {
  memory_.begin_pass();
  count_.assign(parameters_.size(), 0);
  ready_.assign(parameters_.size(), false);
  missing_.clear();
  for (const auto& layout : buckets()) {
    missing_.push_back(static_cast<int>(layout.gradients.size()));
  }
  ready_order_.clear();
  gradients_ = 0;
  clock_.begin(Clock::now());
  enter(Phase::kBackward);
}

void Reducer::take_gradient(int index, const at::Tensor& arrived) {
  const auto i = static_cast<size_t>(index);
  refuse_gradient_with_graph(parameters_[i]);
  ++count_[i];
  ++gradients_;
  if (first_pass_ && count_[i] == 1) ready_order_.push_back(index);
  if (!check_count(index)) return;
  memory_.stage(index, arrived);
  if (local_reduction_) local_reduction_->add_sums_to(i, memory_.reduced(index));
  mark_ready(index);
}

/// True if this gradient of the parameter is its last in this pass, as far as known.
bool Reducer::check_count(int index) const {
  const auto i = static_cast<size_t>(index);
  const bool fixed = options_.graph == GraphUse::kStatic;
  if (fixed && first_pass_) return false;
  if (count_[i] <= wanted_[i]) return count_[i] == wanted_[i];
  std::string what = "a second gradient in one backward pass";
  if (fixed) {
    what = fmt::format("more gradients than the {} of the first step, but static_graph is on",
                       wanted_[i]);
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("parameter '{}' got {}", name_of(index), what));
}

void Reducer::mark_ready(int index) {
  const auto i = static_cast<size_t>(index);
  ready_[i] = true;
  --missing_[static_cast<size_t>(bucket_of_[i])];
}

bool Reducer::in_flight() const {
  if (pending_.empty()) return false;
  const auto& works = pending_.back().works;
  return pending_.back().finish ||
         std::any_of(works.begin(), works.end(), [](const Work& work) { return !work.done(); });
}

void Reducer::launch_full_buckets() {
  while (pending_.size() < buckets().size() && missing_[pending_.size()] == 0) {
    const size_t bucket = pending_.size();
    try {
      pending_.push_back(launch(bucket));
    } catch (const Error& error) {  // the group has failed meanwhile
      throw with_names(error, bucket);
    }
  }
}

Error Reducer::with_names(const Error& error, size_t bucket) const {
  return {error.code(), fmt::format("{} (while averaging the gradients of {})", error.what(),
                                    name_list(bucket_names(bucket)))};
}

Reducer::PendingReduction Reducer::launch(size_t bucket) {
  const BucketLayout& layout = buckets()[bucket];
  PendingReduction pending;
  const CallSite site = CallSite::here().of_bucket(static_cast<int>(bucket));
  if (subtrees_) {
    pending.finish =
        [finishes = memory_.launch(layout, local_reduction_->earlier_sums(), *subtrees_, site)] {
          for (const auto& finish : finishes) finish();
        };
    return pending;
  }
  if (!hooked_) {
    const ReduceOp op = local_reduction_ ? ReduceOp::kSum : ReduceOp::kAvg;
    memory_.launch(layout, op, pending.works, site);
    return pending;
  }
  GradientBucket given{.index = static_cast<int>(bucket),
                       .last = bucket + 1 == buckets().size(),
                       .flat = memory_.flat(layout),
                       .gradients = {},
                       .names = bucket_names(bucket)};
  for (const int index : layout.gradients) {
    given.gradients.push_back(memory_.reduced(index).detach());
  }
  pending.finish = options_.hook->start(given, group_);
  return pending;
}

std::vector<std::string> Reducer::bucket_names(size_t bucket) const {
  std::vector<std::string> names;
  for (const int index : buckets()[bucket].gradients) names.push_back(name_of(index));
  return names;
}

void Reducer::shadow_pass() {
  shadowing_ = true;
  memory_.set_aside();
  reset_pass();
  finish_pass();
  shadowing_ = false;
}

}  // namespace lockstep::inline internal
