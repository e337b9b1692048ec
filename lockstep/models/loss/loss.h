#pragma once
// The interface of a loss for any training task.

#include <ATen/core/Tensor.h>

#include <span>
#include <string>
#include <vector>

namespace lockstep::inline internal {

/// Computes one number from a network's output in training mode and the batch's targets.
class Loss {
 public:
  virtual ~Loss() = default;
  Loss() = default;
  Loss(const Loss&) = delete;
  Loss& operator=(const Loss&) = delete;

  /// A scalar with a graph. Computed in float32 (float64 if `output` is), even if the network ran
  /// in reduced precision. Each loss documents the order of `targets`; their device is that of
  /// `output`. Errors: kInvalidArgument for shapes that do not fit.
  virtual at::Tensor operator()(const at::Tensor& output, std::span<const at::Tensor> targets) = 0;

  /// Names of the terms of the loss; empty if it has only one.
  virtual std::vector<std::string> term_names() const { return {}; }
  /// Terms of the last call, detached scalars in the order of term_names(), or none.
  const std::vector<at::Tensor>& terms() const { return terms_; }

 protected:
  std::vector<at::Tensor> terms_;
};

}  // namespace lockstep::inline internal
