#pragma once
// The loss of differentiable binarization.
// Source: Liao et al., "Real-time Scene Text Detection with Differentiable Binarization", AAAI
// 2020; weights, masks and the selection of hard negatives are MindOCR's.
// Legend: N images, H rows, W columns; m is a mask of 0 and 1.

#include <memory>

#include "lockstep/models/loss/loss.h"
#include "lockstep/models/spec/loss_config.h"

namespace lockstep::inline internal {

/// output: (N, 3, H, W) of DBHead in training mode: binary, thresh, thresh_binary in [0, 1]. The
/// loss is dice(thresh_binary) + l1_scale * L1(thresh) + bce_scale * BCE(binary). terms():
/// loss_binary, loss_thresh, loss_thresh_binary, of these maps, as they are in the sum.
/// Or (N, 1, H, W), binary alone: its term, not scaled; no terms(). targets: binary_map (N, 1, H,
/// W), mask (N, H, W), thresh_map (N, H, W), thresh_mask (N, H, W); the last two may be absent for
/// (N, 1, H, W).
std::unique_ptr<Loss> make_db_loss(const DbLossConfig& options);

/// 1 - 2 sum(p g m) / (sum(p m) + sum(g m) + eps), sums over the whole batch. All (N, H, W).
at::Tensor dice_loss(const at::Tensor& p, const at::Tensor& g, const at::Tensor& m, double eps);

/// sum(|p - t| m) / (sum(m) + eps), sums over the whole batch. All (N, H, W).
at::Tensor masked_l1_loss(const at::Tensor& p, const at::Tensor& t, const at::Tensor& m,
                          double eps);

/// Cross entropy of the positives and the hardest negatives. All (N, H, W). An element's loss is
/// -(g log(p + 1e-12) + (1 - g) log(1 - p + 1e-12)), MindSpore's guard against log(0). Each image
/// keeps the negatives (g = 0, m = 1) whose loss is at least its k-th largest, k =
/// max(min(negatives, 3 * positives), 10). Equal losses can make them more than k. That choice has
/// no gradient. The sum is divided by (sum of positives + sum of k + eps) over the batch, even if
/// an image had fewer than k. Cost: O(N H W); one copy of N numbers to the host.
at::Tensor balanced_bce_loss(const at::Tensor& p, const at::Tensor& g, const at::Tensor& m,
                             double eps);

}  // namespace lockstep::inline internal
