#pragma once
// What a training step needs of a loss, whatever the task.

#include <ATen/core/Tensor.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

/// From what a network gave in training mode, and the batch's targets, to one number.
class Loss {
 public:
  virtual ~Loss() = default;
  Loss() = default;
  Loss(const Loss&) = delete;
  Loss& operator=(const Loss&) = delete;

  /// A scalar with a graph behind it. Computed in float32 (float64 if `output` is), whatever
  /// reduced precision the network ran in. `targets` in the order that each loss states; their
  /// device is that of `output`. Errors: kInvalidArgument for shapes that do not fit.
  virtual at::Tensor operator()(const at::Tensor& output, std::span<const at::Tensor> targets) = 0;

  /// Names of the terms that the loss is the sum of; none where it has one only.
  virtual std::vector<std::string> term_names() const { return {}; }
  /// Of the last call, detached scalars in the order of term_names(), or none.
  const std::vector<at::Tensor>& terms() const { return terms_; }

 protected:
  std::vector<at::Tensor> terms_;
};

}  // namespace lockstep
