#include "lockstep/train/task/class_losses.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/expm1.h>
#include <ATen/ops/kl_div.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <variant>

#include "lockstep/error.h"
#include "lockstep/train/task/class_targets.h"
#include "lockstep/train/task/classification.h"

namespace lockstep::inline internal {
namespace {

constexpr auto kDistillationLoss = "DistillationLoss";

bool are_labels(const at::Tensor& targets) {
  return targets.dim() == 1;
}

/// (N, K) in the logits' type.
at::Tensor by_class(const at::Tensor& logits, const at::Tensor& targets) {
  if (!are_labels(targets)) return targets.to(logits.scalar_type());
  return at::one_hot(targets.to(at::kLong), logits.size(1)).to(logits.scalar_type());
}

/// (1) or (K); undefined without weights. `setting`: for errors. A configuration checks their
/// number only if it has that of the classes, and not those of a loss within a registered one.
at::Tensor weights_like(const at::Tensor& logits, const std::vector<double>& weights,
                        const char* setting) {
  if (weights.empty()) return {};
  if (weights.size() > 1 && std::ssize(weights) != logits.size(1)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} has {} numbers, the network gave {}", setting, weights.size(),
                            shape_text(logits)));
  }
  return at::tensor(weights).to(logits.options());
}

}  // namespace

at::Tensor focal_loss(const at::Tensor& logits, const at::Tensor& targets,
                      const FocalConfig& config) {
  check_softmax_targets("FocalLoss", logits, targets);
  const auto log_p = at::log_softmax(logits, 1);
  // The bound keeps the gradient finite where p is 1 and gamma below 1.
  const auto rest = (-at::expm1(log_p)).clamp_min(1e-12);
  auto terms = -by_class(logits, targets) * rest.pow(config.gamma) * log_p;
  if (!config.alpha.empty()) terms = terms * weights_like(logits, config.alpha, "FocalLoss: alpha");
  return terms.sum(1).mean();
}

at::Tensor bce_loss(const at::Tensor& logits, const at::Tensor& targets, const BceConfig& config) {
  constexpr auto kName = "BCEWithLogitsLoss";
  check_class_targets(kName, logits, targets);
  if (are_labels(targets)) check_labels(kName, logits, targets);
  const auto classes = static_cast<double>(logits.size(1));
  auto wanted = by_class(logits, targets);
  if (are_labels(targets) && config.smoothing > 0) {
    wanted = wanted * (1 - config.smoothing) + config.smoothing / classes;
  }
  const auto loss = at::binary_cross_entropy_with_logits(
      logits, wanted, {}, weights_like(logits, config.pos_weight, "BCEWithLogitsLoss: pos_weight"),
      at::Reduction::Mean);
  return config.sum_classes ? loss * classes : loss;
}

at::Tensor distillation_loss(const at::Tensor& logits, const at::Tensor& targets,
                             const at::Tensor& teacher, const DistillationConfig& config) {
  if (teacher.sizes() != logits.sizes()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("DistillationLoss: the network gave {}, the teacher {}",
                            shape_text(logits), shape_text(teacher)));
  }
  const double t = config.temperature;
  const auto apart = at::kl_div(at::log_softmax(logits / t, 1), at::log_softmax(teacher / t, 1),
                                at::Reduction::Sum, /*log_target=*/true);
  const auto soft = apart * (t * t / static_cast<double>(logits.size(0)));
  const auto hard =
      classification_loss(logits, targets, {.smoothing = config.smoothing}, kDistillationLoss);
  return hard * (1 - config.weight) + soft * config.weight;
}

LossFunction class_loss(const LossConfig& config) {
  if (const auto* focal = std::get_if<FocalConfig>(&config)) {
    return [own = *focal](const Tensors& outputs, const Tensors& targets) {
      return focal_loss(outputs.front(), targets.front(), own);
    };
  }
  if (const auto* bce = std::get_if<BceConfig>(&config)) {
    return [own = *bce](const Tensors& outputs, const Tensors& targets) {
      return bce_loss(outputs.front(), targets.front(), own);
    };
  }
  if (const auto* distillation = std::get_if<DistillationConfig>(&config)) {
    return cross_entropy({.smoothing = distillation->smoothing}, kDistillationLoss);
  }
  return cross_entropy(std::get<CrossEntropyConfig>(config));
}

}  // namespace lockstep::inline internal
