#pragma once
// Checks that targets are classes. A regression's would give a loss or a figure without a meaning.
//
// `part`: the loss or metric, for errors. `logits`: the network's first output, (N, K). `targets`:
// labels (N), or a number for each class (N, K).
// Cost: shapes and types alone, but for values on the CPU. No device is waited for.
// Errors: kInvalidArgument, one line.

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

namespace lockstep::inline internal {

/// "(2, 3)".
std::string shape_text(const at::Tensor& tensor);

/// Labels are whole numbers, and a number for each class has its logit.
void check_class_targets(std::string_view part, const at::Tensor& logits,
                         const at::Tensor& targets);

/// Labels (N) are numbers of classes. Those on a device are not looked at.
void check_labels(std::string_view part, const at::Tensor& logits, const at::Tensor& labels);

/// Both, of a softmax over classes: numbers for classes need two classes or more.
void check_softmax_targets(std::string_view part, const at::Tensor& logits,
                           const at::Tensor& targets);

/// The same of cross entropy, whose samples may have more dimensions: logits (N, K, d...), labels
/// (N, d...). A label may be -100, which does not count.
void check_cross_entropy_targets(std::string_view part, const at::Tensor& logits,
                                 const at::Tensor& targets);

/// For metrics, whose tensors are on the CPU: check_class_targets(), and numbers for classes are
/// from 0 to 1, but for rounding.
void check_measured_targets(std::string_view part, const at::Tensor& logits,
                            const at::Tensor& targets);

}  // namespace lockstep::inline internal
