#include "lockstep/parallel/local_reduction.h"

#include <ATen/core/grad_mode.h>

#include <chrono>
#include <utility>

#include "lockstep/comm/kernels/reduce.h"
#include "lockstep/parallel/pass_clock.h"
#include "lockstep/tensor/device/dtype.h"

namespace lockstep::inline internal {
namespace {

/// left + right, in the memory of `left` if no other tensor holds it.
at::Tensor sum_of(const at::Tensor& left, const at::Tensor& right) {
  return left.storage().use_count() == 1 ? left.add_(right) : left.add(right);
}

void divide_by(at::Tensor& tensor, int divisor) {
  if (!tensor.is_non_overlapping_and_dense()) tensor = tensor.contiguous();
  divide(tensor.data_ptr(), tensor.numel(), to_dtype(tensor.scalar_type()), divisor);
}

/// True if another owner than the parameter may read this gradient's memory.
bool is_kept(const at::Tensor& grad) {
  if (!grad.defined() || grad.layout() != at::kStrided) return false;
  return grad.use_count() > 1 || grad.storage().use_count() > 1 ||
         !grad.storage().unsafeGetStorageImpl()->resizable();  // memory that was given to libtorch
}

}  // namespace

LocalReduction::LocalReduction(ProcessGroup group, VirtualRankRange range,
                               std::vector<NamedTensor> parameters,
                               std::vector<NamedTensor> buffers)
    : range_(range),
      parameters_(std::move(parameters)),
      buffers_(std::move(buffers)),
      homes_(parameters_.size()),
      average_(std::move(group), range_, buffers_) {}

void LocalReduction::enter(int index) {
  const at::NoGradGuard no_grad;
  if (!std::exchange(under_way_, true)) {
    base_ = clone_buffers();
    for (size_t i = 0; i < homes_.size(); ++i) {
      const at::Tensor& grad = parameters_[i].tensor.grad();
      homes_[i] = is_kept(grad) ? grad : at::Tensor();
    }
  }
  Left kept;
  if (!kept_.empty()) kept = std::exchange(kept_[static_cast<size_t>(index)], {});
  for (size_t i = 0; i < parameters_.size(); ++i) {
    auto& grad = parameters_[i].tensor.mutable_grad();
    grad = kept.gradients.empty() ? at::Tensor() : std::move(kept.gradients[i]);
  }
  if (!kept.gradients.empty()) {
    set_buffers(kept.buffers);
  } else if (index > 0) {
    set_buffers(base_);
  }
}

void LocalReduction::keep(int index) {
  require_gradients();
  kept_.resize(static_cast<size_t>(range_.count));
  kept_[static_cast<size_t>(index)] = {take_gradients(), clone_buffers()};
  // A reader of the module in between must not see the buffers of one rank's last virtual rank.
  if (index + 1 == range_.count) set_buffers(base_);
}

void LocalReduction::add(int index) {
  require_gradients();
  push(index, {take_gradients(), clone_buffers()});
}

void LocalReduction::push(int index, Left left) {
  const at::NoGradGuard no_grad;
  for (int n = sums_to_add(range_, index); n > 0; --n) {
    Left sum = std::move(sums_.back());
    sums_.pop_back();
    for (size_t i = 0; i < left.gradients.size(); ++i) {
      sum.gradients[i] = sum_of(sum.gradients[i], std::exchange(left.gradients[i], {}));
    }
    for (size_t i = 0; i < buffers_.size(); ++i) {
      // Buffers that cannot be averaged are the first virtual rank's.
      if (sum.buffers[i].is_floating_point()) sum.buffers[i].add_(left.buffers[i]);
    }
    left = std::move(sum);
  }
  sums_.push_back(std::move(left));
}

void LocalReduction::add_sums_to(size_t i, const at::Tensor& gradient) const {
  const at::NoGradGuard no_grad;
  const auto end = sums_.rbegin() + static_cast<ptrdiff_t>(num_sums_for_last());
  for (auto sum = sums_.rbegin(); sum != end; ++sum) gradient.add_(sum->gradients[i]);
}

/// Number of present sums that belong to the last virtual rank's subtree.
size_t LocalReduction::num_sums_for_last() const {
  return static_cast<size_t>(sums_to_add(range_, range_.count - 1));
}

std::vector<std::span<const at::Tensor>> LocalReduction::earlier_sums() const {
  std::vector<std::span<const at::Tensor>> earlier;
  for (size_t k = 0; k + num_sums_for_last() < sums_.size(); ++k) {
    earlier.emplace_back(sums_[k].gradients);
  }
  return earlier;
}

void LocalReduction::finish(bool alone, bool average_buffers) {
  require_gradients();
  if (alone) average_alone();
  push(range_.count - 1, {{}, clone_buffers()});
  set_buffers(average_buffers ? sums_.front().buffers : base_);
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::span<const at::Tensor>> buffers;
  for (const Left& sum : sums_) buffers.emplace_back(sum.buffers);
  if (average_buffers) average_.run(buffers);
  averaging_ms_ = milliseconds(std::chrono::steady_clock::now() - begin);
  go_home();
  sums_.clear();
  kept_.clear();
  under_way_ = false;
}

void LocalReduction::go_home() {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < homes_.size(); ++i) {
    at::Tensor& grad = parameters_[i].tensor.mutable_grad();
    at::Tensor home = std::exchange(homes_[i], {});
    if (!home.defined() || home.is_same(grad)) continue;
    home.copy_(grad);
    grad = std::move(home);
  }
}

void LocalReduction::average_alone() {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor& grad = parameters_[i].tensor.mutable_grad();
    for (auto sum = sums_.rbegin(); sum != sums_.rend(); ++sum) {
      grad = sum_of(grad, sum->gradients[i]);
    }
    if (range_.total > 1) divide_by(grad, range_.total);
  }
}

void LocalReduction::reset() {
  if (std::exchange(under_way_, false)) set_buffers(base_);
  for (size_t i = 0; i < homes_.size(); ++i) {
    if (homes_[i].defined()) parameters_[i].tensor.mutable_grad() = std::exchange(homes_[i], {});
  }
  sums_.clear();
  kept_.clear();
}

std::vector<at::Tensor> LocalReduction::clone_buffers() const {
  std::vector<at::Tensor> values;
  for (const auto& buffer : buffers_) values.push_back(buffer.tensor.detach().clone());
  return values;
}

/// variable_data() leaves the version counter unchanged: see BufferBroadcast.
void LocalReduction::set_buffers(const std::vector<at::Tensor>& values) const {
  for (size_t i = 0; i < values.size(); ++i) buffers_[i].tensor.variable_data().copy_(values[i]);
}

std::vector<at::Tensor> LocalReduction::take_gradients() const {
  std::vector<at::Tensor> gradients;
  for (const auto& parameter : parameters_) {
    gradients.push_back(std::exchange(parameter.tensor.mutable_grad(), at::Tensor()));
  }
  return gradients;
}

void LocalReduction::require_gradients() const {
  std::vector<std::string> names;
  for (const auto& parameter : parameters_) {
    refuse_sparse_gradient(parameter);
    if (!parameter.tensor.grad().defined()) names.push_back(parameter.name);
  }
  if (!names.empty()) throw_without_gradient(names, true);
}

}  // namespace lockstep::inline internal
