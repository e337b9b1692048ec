#include "lockstep/models/loss/db_loss.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/kthvalue.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/utils.h>

#include <algorithm>
#include <vector>

#include "lockstep/error.h"
#include "lockstep/models/layers.h"

namespace lockstep::inline internal {
namespace {

constexpr int64_t kNegativesAPositive = 3;
constexpr int64_t kLeastNegatives = 10;
constexpr double kLogGuard = 1e-12;

/// k of each image.
std::vector<int64_t> negatives_kept(const at::Tensor& positives, const at::Tensor& negatives) {
  const auto counts = at::stack({positives.sum({1, 2}), negatives.sum({1, 2})})
                          .to(at::kCPU, at::kDouble)
                          .to(at::kLong);
  std::vector<int64_t> kept;
  for (int64_t image = 0; image < counts.size(1); ++image) {
    const auto positive = counts[0][image].item<int64_t>();
    const auto negative = counts[1][image].item<int64_t>();
    kept.push_back(std::max(std::min(negative, kNegativesAPositive * positive), kLeastNegatives));
  }
  return kept;
}

/// 1 for the losses to keep. losses: (N, H, W), 0 where there is no negative.
at::Tensor hardest(const at::Tensor& losses, const std::vector<int64_t>& kept) {
  const torch::NoGradGuard no_grad;
  at::Tensor mask = at::empty_like(losses);
  for (int64_t image = 0; image < losses.size(0); ++image) {
    const at::Tensor own = losses[image].flatten();
    const int64_t size = own.numel();
    const int64_t largest = std::min(kept[static_cast<size_t>(image)], size);
    const at::Tensor threshold = std::get<0>(at::kthvalue(own, size - largest + 1));
    mask[image].copy_(losses[image] >= threshold);
  }
  return mask;
}

void require_shape(const char* what, const at::Tensor& value, at::IntArrayRef shape) {
  if (value.sizes() == shape) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("DBLoss: {} has the shape ({}), the network's output needs ({})", what,
                          fmt::join(value.sizes(), ", "), fmt::join(shape, ", ")));
}

class DbLoss final : public Loss {
 public:
  explicit DbLoss(const DbLossConfig& options) : options_(options) {}

  at::Tensor operator()(const at::Tensor& output, std::span<const at::Tensor> targets) override {
    const auto maps = check(output, targets);
    const at::Tensor all = as_full_precision(output);
    const auto target = [&](size_t i) { return targets[i].to(all.scalar_type()); };
    const at::Tensor g = target(0).squeeze(1), m = target(1);
    const at::Tensor binary = binary_term(all.select(1, 0), g, m);
    terms_.clear();
    if (maps == 1) return binary;
    const double eps = options_.eps;
    const at::Tensor dice = dice_loss(all.select(1, 2), g, m, eps);
    const at::Tensor thresh =
        options_.l1_scale * masked_l1_loss(all.select(1, 1), target(2), target(3), eps);
    const at::Tensor scaled = options_.bce_scale * binary;
    terms_ = {scaled.detach(), thresh.detach(), dice.detach()};
    return dice + thresh + scaled;
  }

  std::vector<std::string> term_names() const override {
    return {"loss_binary", "loss_thresh", "loss_thresh_binary"};
  }

 private:
  at::Tensor binary_term(const at::Tensor& p, const at::Tensor& g, const at::Tensor& m) const {
    return options_.dice_for_bce ? dice_loss(p, g, m, options_.eps)
                                 : balanced_bce_loss(p, g, m, options_.eps);
  }

  /// The number of maps in `output`.
  static int64_t check(const at::Tensor& output, std::span<const at::Tensor> targets) {
    const int64_t maps = output.dim() == 4 ? output.size(1) : 0;
    const size_t wanted = maps == 1 ? 2 : 4;
    if ((maps != 1 && maps != 3) || targets.size() < wanted) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("DBLoss: output ({}) with {} targets; it takes (N, 3, H, W) with 4 "
                              "targets (binary_map, mask, thresh_map, thresh_mask) or (N, 1, H, W) "
                              "with 2",
                              fmt::join(output.sizes(), ", "), targets.size()));
    }
    const int64_t n = output.size(0), h = output.size(2), w = output.size(3);
    require_shape("binary_map", targets[0], {n, 1, h, w});
    require_shape("mask", targets[1], {n, h, w});
    if (maps == 3) {
      require_shape("thresh_map", targets[2], {n, h, w});
      require_shape("thresh_mask", targets[3], {n, h, w});
    }
    return maps;
  }

  DbLossConfig options_;
};

}  // namespace

at::Tensor dice_loss(const at::Tensor& p, const at::Tensor& g, const at::Tensor& m, double eps) {
  const at::Tensor masked = p * m, truth = g * m;
  return 1 - 2 * (masked * truth).sum() / (masked.sum() + truth.sum() + eps);
}

at::Tensor masked_l1_loss(const at::Tensor& p, const at::Tensor& t, const at::Tensor& m,
                          double eps) {
  return ((p - t).abs() * m).sum() / (m.sum() + eps);
}

at::Tensor balanced_bce_loss(const at::Tensor& p, const at::Tensor& g, const at::Tensor& m,
                             double eps) {
  const at::Tensor positive = g * m, negative = (1 - g) * m;
  const auto kept = negatives_kept(positive, negative);
  const at::Tensor loss = -(g * (p + kLogGuard).log() + (1 - g) * (1 - p + kLogGuard).log());
  const at::Tensor of_negatives = loss * negative;
  const at::Tensor sum =
      (loss * positive).sum() + (of_negatives * hardest(of_negatives.detach(), kept)).sum();
  double negatives = 0;
  for (const int64_t k : kept) negatives += static_cast<double>(k);
  return sum / (positive.sum() + negatives + eps);
}

std::unique_ptr<Loss> make_db_loss(const DbLossConfig& options) {
  return std::make_unique<DbLoss>(options);
}

}  // namespace lockstep::inline internal
