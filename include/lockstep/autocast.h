#pragma once
// AutocastGuard turns libtorch's autocast on: chosen operations compute in a 16-bit type, whatever
// their inputs are. forward_at() computes a whole network so.
//
// Use:
//   const auto answers = lockstep::forward_at(
//       lockstep::AmpLevel::kO1, images,
//       [&](const at::Tensor& input) { return net->forward(input); });  // computes in 16 bits
//   loss_of(answers, labels).backward();                                // answers are float32
//   optimizer.step();
//
// Threads: autocast is on in the guard's thread alone, and that thread ends the guard. Several
// threads may have guards at the same time.
// Cost: O0 costs nothing. At O1 libtorch casts each weight once per guard. O1 to O3 also cast the
// outputs, and O2 and O3 the inputs. Nothing communicates.
// Errors: kUnavailable for another device than the CPU and CUDA; exceptions of the network.

#include <ATen/core/Tensor.h>

#include <concepts>
#include <vector>

#include "lockstep/amp_policy.h"

namespace lockstep {

/// The 16-bit type of mixed precision on a device: bfloat16 on the CPU (libtorch has no float16
/// convolutions there), float16 on CUDA. Errors: kUnavailable for other devices.
at::ScalarType low_precision(at::DeviceType device);

/// While the guard lives, autocast is on for tensors on `device`, in this thread. End it before
/// backward(), which computes in the types that forward chose. Guards may nest. The last to end
/// drops the casts of weights that libtorch keeps, so an optimizer step may follow.
/// Errors: kUnavailable for a device without autocast.
/// CPU and CUDA.
class AutocastGuard {
 public:
  AutocastGuard(at::DeviceType device, at::ScalarType dtype);
  ~AutocastGuard();
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  at::DeviceType device_;
  bool was_on_;
  at::ScalarType old_dtype_;
};

/// Returns net(inputs), computed as `level` prescribes, on the device of the first input, as
/// float32. `inputs`: at least one. Whole numbers, such as indices, are not cast. For O2 and O3 the
/// caller must have cast the net's weights, as `lockstep train` does; programs use O0 and O1.
/// `List`: a std::vector, or Tensors, which keeps names.
template <std::derived_from<std::vector<at::Tensor>> List = std::vector<at::Tensor>, class Net>
List forward_at(AmpLevel level, List inputs, Net&& net) {
  if (level == AmpLevel::kO0) return net(inputs);
  const auto device = inputs.front().device().type();
  const auto cast = [](List& tensors, at::ScalarType type) {
    for (auto& tensor : tensors) {
      if (tensor.is_floating_point()) tensor = tensor.to(type);
    }
  };
  List outputs;
  if (level == AmpLevel::kO1) {
    const AutocastGuard autocast(device, low_precision(device));
    outputs = net(inputs);
  } else {
    cast(inputs, low_precision(device));
    outputs = net(inputs);
  }
  cast(outputs, at::kFloat);
  return outputs;
}

/// The same for one input and one output.
template <class Net>
at::Tensor forward_at(AmpLevel level, const at::Tensor& input, Net&& net) {
  const auto compute = [&](const std::vector<at::Tensor>& inputs) {
    return std::vector<at::Tensor>{net(inputs.front())};
  };
  return forward_at(level, std::vector<at::Tensor>{input}, compute).front();
}

}  // namespace lockstep
