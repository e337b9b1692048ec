#pragma once
// The progress of a training run, apart from its tensors: the content of a checkpoint's state.json.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/loss_scale.h"

namespace lockstep {

/// One evaluation's value of the metric that ranks checkpoints.
struct MetricPoint {
  int64_t epoch = 0;
  int64_t step = 0;
  double value = 0;

  bool operator==(const MetricPoint&) const = default;
};

struct TrainingState {
  static constexpr int kFormat = 3;  ///< Raised when old programs could misread new files.

  std::string model;           ///< Name of the network; load refuses another one.
  int64_t epoch = 0;           ///< Epochs completed.
  int64_t step = 0;            ///< Optimizer steps done since the start of training.
  int64_t batch_in_epoch = 0;  ///< Batches that a rank has taken of the current epoch; 0 at its
                               ///< end.
  /// Samples taken of the current epoch, over all ranks; 0 only at its end. They are the first ones
  /// of its order (see DistributedSampler).
  int64_t epoch_samples = 0;
  /// Ranks or batches changed within the current epoch: its steps differ from those of a whole one.
  bool dealt_anew = false;
  double epoch_loss = 0;      ///< Sum of the losses of those batches.
  double epoch_seconds = 0;   ///< Time for them, over all runs that did a part.
  int64_t samples = 0;        ///< Training samples consumed so far, over all ranks.
  int64_t schedule_step = 0;  ///< Position in the learning-rate schedule.
  /// Batches whose optimizer step was skipped because gradients overflowed: they have no place in
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

/// The epoch of the weights, from 1: the current one, or at its end the last one.
int64_t epoch_of(const TrainingState& state);

/// Adds an evaluation's value to metric_value, history and best. Returns whether it is the best so
/// far: strictly better than all before, and a number.
bool record_metric(TrainingState& state, double value);

/// Ranks checkpoints by metric `name` from now on. If the metric is a new one, its values cannot be
/// compared with the old: metric_value, best and history are dropped.
void rank_by(TrainingState& state, const std::string& name, bool higher_is_better);

/// Length and digest of a file of the checkpoint, to detect damage.
struct FileDigest {
  int64_t bytes = 0;
  std::string kind;  ///< "poly1305", or "sha256" as in format 2.
  std::string hex;

  bool operator==(const FileDigest&) const = default;
};
}  // namespace lockstep
