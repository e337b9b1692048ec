#include "lockstep/train/task/class_targets.h"

#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

bool are_whole(const at::Tensor& targets) {
  return c10::isIntegralType(targets.scalar_type(), /*includeBool=*/true);
}

[[noreturn]] void refuse_targets(std::string_view part, const at::Tensor& logits,
                                 const at::Tensor& targets) {
  const bool fractions = targets.dim() == 1 && !are_whole(targets);
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("{}: the network gave {}, the targets are {}{}: they must be labels (N), or "
                  "a number for each class (N, K), for logits (N, K)",
                  part, shape_text(logits), shape_text(targets),
                  fractions ? fmt::format(" of type {}", c10::toString(targets.scalar_type()))
                            : std::string()));
}

/// `ignored`: a label that does not count.
void check_labels_but(std::optional<int64_t> ignored, std::string_view part,
                      const at::Tensor& logits, const at::Tensor& labels) {
  if (!labels.is_cpu() || labels.scalar_type() == at::kBool) return;
  const int64_t classes = logits.size(1);
  auto outside = labels.lt(0).logical_or(labels.ge(classes));
  if (ignored) outside = outside.logical_and(labels.ne(*ignored));
  const auto wrong = labels.masked_select(outside);
  if (wrong.numel() == 0) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: the label {} is out of range: the network has {} classes, from 0 on",
                          part, wrong[0].item().toLong(), classes));
}

void refuse_one_class(std::string_view part, const at::Tensor& logits) {
  if (logits.size(1) > 1) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: the network gave {}: of one class this loss is always 0, whatever "
                          "the targets are",
                          part, shape_text(logits)));
}

}  // namespace

std::string shape_text(const at::Tensor& tensor) {
  return fmt::format("({})", fmt::join(tensor.sizes(), ", "));
}

void check_class_targets(std::string_view part, const at::Tensor& logits,
                         const at::Tensor& targets) {
  const bool labels = targets.dim() == 1 && are_whole(targets);
  const bool fit = logits.dim() == 2 &&
                   (labels ? targets.size(0) == logits.size(0) : targets.sizes() == logits.sizes());
  if (!fit) refuse_targets(part, logits, targets);
}

void check_labels(std::string_view part, const at::Tensor& logits, const at::Tensor& labels) {
  check_labels_but(std::nullopt, part, logits, labels);
}

void check_softmax_targets(std::string_view part, const at::Tensor& logits,
                           const at::Tensor& targets) {
  check_class_targets(part, logits, targets);
  if (targets.dim() == 2) return refuse_one_class(part, logits);
  check_labels(part, logits, targets);
}

void check_cross_entropy_targets(std::string_view part, const at::Tensor& logits,
                                 const at::Tensor& targets) {
  constexpr int64_t kIgnored = -100;  // libtorch's default
  if (logits.dim() < 2) refuse_targets(part, logits, targets);
  if (!are_whole(targets)) {
    if (targets.sizes() != logits.sizes()) refuse_targets(part, logits, targets);
    return refuse_one_class(part, logits);
  }
  auto shape = logits.sizes().vec();
  shape.erase(shape.begin() + 1);
  if (targets.sizes() != at::IntArrayRef(shape)) refuse_targets(part, logits, targets);
  check_labels_but(kIgnored, part, logits, targets);
}

void check_measured_targets(std::string_view part, const at::Tensor& logits,
                            const at::Tensor& targets) {
  check_class_targets(part, logits, targets);
  if (targets.dim() == 1 || targets.scalar_type() == at::kBool) return;
  constexpr double kRounding = 1e-3;  // shares that were added up
  const auto inside = targets.ge(-kRounding).logical_and(targets.le(1 + kRounding));
  const auto wrong = targets.masked_select(inside.logical_not());  // and NaN
  if (wrong.numel() == 0) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: a target is {:.4g}: a number for each class must be from 0 to 1",
                          part, wrong[0].item().toDouble()));
}

}  // namespace lockstep::inline internal
