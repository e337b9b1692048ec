// What the ranks of a trainer tell each other besides gradients.

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <csignal>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/parallel/shards.h"
#include "lockstep/train/trainer.h"

namespace lockstep {

/// One small reduction a micro-step: the mean loss, and which signals, overflows and faults came
/// anywhere.
Trainer::Agreed Trainer::agree(std::span<const double> losses, bool overflow, const Batch& batch) {
  const double loss = tree_sum(losses);
  const int signal = parts_.pending_signal();
  std::array<double, 6> sums = {loss,
                                signal == SIGTERM ? 1.0 : 0.0,
                                signal == SIGINT ? 1.0 : 0.0,
                                overflow ? 1.0 : 0.0,
                                static_cast<double>(batch.faults.size()),
                                static_cast<double>(batch.remarks.size())};
  group().all_reduce(sums.data(), sums.size(), DType::kFloat64, ReduceOp::kSum).wait();
  if (!std::isfinite(sums[0])) report_divergence(loss);
  if (sums[1] > 0) pending_stop_ = StopReason::kSigterm;
  if (sums[2] > 0) pending_stop_ = StopReason::kSigint;
  return {sums[0] / shards().total, sums[3] > 0, static_cast<int64_t>(sums[4]),
          static_cast<int64_t>(sums[5])};
}

void Trainer::stop_if_signalled() {
  const int signal = parts_.pending_signal();
  std::array<int32_t, 2> came = {signal == SIGTERM, signal == SIGINT};
  group().all_reduce(came.data(), came.size(), DType::kInt32, ReduceOp::kSum).wait();
  if (came[0] > 0) stop_ = StopReason::kSigterm;
  if (came[1] > 0) stop_ = StopReason::kSigint;
}

void Trainer::report_divergence(double own_loss) {
  std::vector<double> losses(static_cast<size_t>(num_ranks()));
  group().all_gather(&own_loss, losses.data(), 1, DType::kFloat64).wait();
  std::vector<int> ranks;
  for (int rank = 0; rank < num_ranks(); ++rank) {
    if (!std::isfinite(losses[static_cast<size_t>(rank)])) ranks.push_back(rank);
  }
  throw Error(ErrorCode::kDiverged,
              fmt::format("epoch: {} step: {}. Invalid loss, terminating training: it is not a "
                          "finite number on rank {}. Try a smaller scheduler.lr or "
                          "train.clip_grad=True",
                          state_.epoch + 1, state_.batch_in_epoch + 1, rank_list(ranks)));
}

}  // namespace lockstep
