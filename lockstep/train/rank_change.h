#pragma once
// A run that goes on with another number of ranks. It is the same run by virtual ranks, the same
// batch by accumulation, or a smaller or larger run by rule.

#include <cstdint>
#include <string>

#include "lockstep/train/config/config.h"

namespace lockstep::inline internal {

/// The factor of every learning rate for a global batch of `batch` samples; see
/// ParallelConfig::scale_rate. linear: batch / reference. sqrt: its root.
/// Sources: Goyal et al., arXiv:1706.02677; Krizhevsky, arXiv:1404.5997.
double rate_factor(const ParallelConfig& config, int64_t batch);

/// Samples of an optimizer step over all ranks. `parts`: virtual ranks, or ranks without them.
int64_t global_batch(const TrainSection& train, int parts);

/// "Learning rate: scheduler.lr 0.1 x 0.25 = 0.025 (parallel.scale_rate linear: a batch of 64,
/// reference_batch 256)"; empty without scale_rate.
std::string rate_line(const Config& config, int parts);

/// For `lockstep plan`: what goes on `to` ranks in the place of `from`.
struct RankChange {
  int from = 1;
  int to = 1;
};

/// The three ways to go on, as text. `config`: of the run, if it is known. Errors: kInvalidArgument
/// if its virtual ranks are fewer than `from`.
std::string describe_rank_change(const RankChange& change, const Config* config);

}  // namespace lockstep::inline internal
