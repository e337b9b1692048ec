#pragma once
// Where a training run stands, apart from its tensors: the content of a checkpoint's state.json.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/loss_scale.h"

namespace lockstep {

/// One evaluation's value of the metric by which checkpoints are ranked.
struct MetricPoint {
  int64_t epoch = 0;
  int64_t step = 0;
  double value = 0;

  bool operator==(const MetricPoint&) const = default;
};

struct TrainingState {
  static constexpr int kFormat = 2;  ///< Raised when old programs could misread new files.

  std::string model;           ///< Name of the network; another one is refused on load.
  int64_t epoch = 0;           ///< Epochs completed.
  int64_t step = 0;            ///< Optimizer steps done since the start of training.
  int64_t batch_in_epoch = 0;  ///< Batches a rank has taken of the epoch under way; 0 at its end.
  /// Samples of the epoch under way, over all ranks; 0 at its end, and only there. They are the
  /// first so many of its order (see DistributedSampler).
  int64_t epoch_samples = 0;
  /// Ranks or batches changed within the epoch under way: its steps are not those of a whole one.
  bool dealt_anew = false;
  double epoch_loss = 0;      ///< Sum of the losses of those batches.
  double epoch_seconds = 0;   ///< That they took, in all runs that had a part in them.
  int64_t samples = 0;        ///< Training samples consumed so far, over all ranks.
  int64_t schedule_step = 0;  ///< Position in the learning-rate schedule.
  /// Batches whose optimizer step was left out because gradients overflowed: they have no place in
  /// the schedule.
  int64_t dropped_batches = 0;
  std::optional<LossScaleState> loss_scale;  ///< None without a loss scaler.
  uint64_t seed = 0;
  int world_size = 1;
  int virtual_ranks = 1;

  std::string metric;  ///< Name of the metric behind the fields below; empty: none.
  bool higher_is_better = true;
  std::optional<double> metric_value;  ///< Of these weights; none when not evaluated.
  std::optional<MetricPoint> best;     ///< Of the run so far.
  std::vector<MetricPoint> history;    ///< Every evaluation, in order.

  std::string rng;  ///< State of libtorch's CPU generator, raw bytes (see rng_bytes()); may be "".

  bool operator==(const TrainingState&) const = default;
};

/// The epoch, from 1, that the weights are of: the one under way, or at its end the last one.
int64_t epoch_of(const TrainingState& state);

/// Takes an evaluation's value into metric_value, history and best. Returns whether it is the best
/// so far: strictly better than all before, and a number.
bool record_metric(TrainingState& state, double value);

/// From now on checkpoints are ranked by metric `name`. Values of another one cannot be compared
/// with its values: metric_value, best and history are dropped.
void rank_by(TrainingState& state, const std::string& name, bool higher_is_better);

/// Length and SHA-256 (hex) of a file of the checkpoint, to tell a damaged one.
struct FileDigest {
  int64_t bytes = 0;
  std::string sha256;

  bool operator==(const FileDigest&) const = default;
};
}  // namespace lockstep
