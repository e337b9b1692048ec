#pragma once
// This header finds checkpoints on disk, chooses those to keep, and admits one writer at a time. It
// also has the progress of a run. training_checkpoint.h reads and writes the tensors.
//
// Use:
//   const std::filesystem::path dir = "out";
//   const auto entries = lockstep::list_checkpoints(dir, "acc");
//   const auto best = lockstep::best_checkpoint(entries, /*higher_is_better=*/true);
//   const auto folder = best ? dir / best->name : lockstep::find_checkpoint(dir);
//   lockstep::load_weights(lockstep::weights_in(folder, /*averaged=*/true), *net);
//
// Threads: any; functions share nothing but the disk. Nothing is collective.
// Cost: to find a checkpoint takes at most a listing of the folder, and a look into each step_*.
// list_checkpoints() also reads each state.json.
// Errors: those of each function; std::filesystem::filesystem_error if a look at the disk fails.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/amp_policy.h"

namespace lockstep::inline internal {
class Writer;
}

namespace lockstep {

// The choice of checkpoints to keep on disk, apart from their deletion.

enum class Keep {
  kAll,
  kLatest,  ///< The newest `count`.
  kTopK,    ///< The best `count` by metric.
};

struct KeepPolicy {
  Keep keep = Keep::kLatest;
  int count = 5;                 ///< At least 1.
  bool higher_is_better = true;  ///< For kTopK and for the best checkpoint.

  void validate() const;  ///< Throws kInvalidArgument naming field and value.
};

struct CheckpointEntry {
  std::string name;  ///< Folder name, e.g. "step_000020".
  int64_t step = 0;
  std::optional<double> metric;  ///< None if it was not evaluated or is not finite.
};

/// The best entry by metric; of equals the first, with the lower step, as record_metric() has it.
/// None if no entry has a metric.
std::optional<CheckpointEntry> best_checkpoint(const std::vector<CheckpointEntry>& entries,
                                               bool higher_is_better);

/// Parameters and buffers, in each checkpoint's folder.
inline constexpr const char* kModelFile = "model.safetensors";
/// The moving average of both, where a run keeps one; evaluation uses it.
inline constexpr const char* kEmaFile = "ema.safetensors";

/// Every complete checkpoint of `dir` by step, with the value of metric `metric` from its
/// state.json (none if state.json is damaged or holds another metric). Empty if there is no such
/// folder. Errors: kIo if it cannot be read, or not to its end.
std::vector<CheckpointEntry> list_checkpoints(const std::filesystem::path& dir,
                                              const std::string& metric = "");

/// The folder of one checkpoint: `path` itself if it holds a state.json, else the target of its
/// `latest`, else its newest step_*. Errors: kNotFound naming the places searched, kInvalidArgument
/// for a file, kIo if the folder cannot be read.
std::filesystem::path find_checkpoint(const std::filesystem::path& path);
/// Whether find_checkpoint() would find a checkpoint, so that a run resumes. Errors: kIo.
bool has_checkpoint(const std::filesystem::path& path);

/// The file of weights behind `path`: `path` itself, or in a checkpoint's folder (see
/// find_checkpoint()) kModelFile; with `averaged` kEmaFile, if it exists. Errors: those of
/// find_checkpoint().
std::filesystem::path weights_in(const std::filesystem::path& path, bool averaged);

// The progress of a training run, apart from its tensors: the content of a checkpoint's state.json.

/// One evaluation's value of the metric that ranks checkpoints.
struct MetricPoint {
  int64_t epoch = 0;
  int64_t step = 0;
  double value = 0;

  bool operator==(const MetricPoint&) const = default;
};

/// How long a metric that is watched has not improved: for a schedule or early stopping.
struct PatienceState {
  std::string metric;
  std::optional<double> best{};
  int64_t waited = 0;  ///< Evaluations in a row without improvement.
  int64_t times = 0;   ///< How often the patience ran out.
  bool higher_is_better = true;

  bool operator==(const PatienceState&) const = default;
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
  /// Of the names and labels of pictures in files, in their order, and of any samples' weights. 0:
  /// the samples have none of these. Nothing: unknown, as in checkpoints of early versions.
  std::optional<uint64_t> samples_digest{};
  /// Ranks or batches changed within the current epoch: its steps differ from those of a whole one.
  bool dealt_anew = false;
  /// Sum of the losses of those batches, each times its items where epoch_items is given.
  double epoch_loss = 0;
  /// Items of those batches over all ranks, a whole number; nothing without an ItemCount.
  std::optional<double> epoch_items{};
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

  std::optional<PatienceState> plateau;         ///< Of the schedule reduce_on_plateau.
  std::optional<PatienceState> early_stopping;  ///< Of train.early_stopping.

  std::string rng;  ///< State of libtorch's CPU generator, raw bytes (see rng_bytes()); may be "".

  bool operator==(const TrainingState&) const = default;
};

/// The epoch of the weights, from 1: the current one, or at its end the last one.
int64_t epoch_of(const TrainingState& state);

/// Adds an evaluation's value to metric_value, history and best. Returns whether it is the best so
/// far: strictly better than all before, and finite.
bool record_metric(TrainingState& state, double value);

/// Ranks checkpoints by metric `name` from now on. If the metric is a new one, its values cannot be
/// compared with the old: metric_value, best and history are dropped. If it is the same, and its
/// other values are better now, `best` becomes the best of history by the new rule.
void rank_by(TrainingState& state, const std::string& name, bool higher_is_better);

// One writer at a time in a folder of results, even if an earlier writer is disconnected or stopped
// and is unaware of its replacement.
//
// A restarted job is generation 2, then 3, and so on. Its writer leaves DIR/.writer-JOB-G, then
// removes unfinished work of earlier generations, and only then looks for a checkpoint.
// After a writer fills a hidden folder, and before it gives the folder its name, it checks that no
// newer generation has left its mark. So either an older writer named its folder before the newer
// one looked, or its hidden folder is gone and rename fails.
//
// A mark holds the token of its generation. If a job splits into partitions, each may start a
// generation of the same number: the first to leave its mark stays.

/// The writer of a folder; a value, whose copies are the same writer.
///
/// Use:
///   const std::filesystem::path dir = "out";
///   lockstep::WriterFence fence;
///   if (world.rank == 0) {
///     fence = {dir, world.job_id, world.generation, world.generation_token};
///   }
///   group.barrier();  // no rank looks for a checkpoint before
class WriterFence {
 public:
  /// For a program outside of jobs: nothing is newer.
  WriterFence();
  /// Leaves the mark of a generation (from 1) of a job in `dir`, which is made if it is missing.
  /// Removes the marks of earlier generations, and their unfinished work. Generation 1 begins a
  /// job: it removes all marks but those of its own launch. `token`: World::generation_token,
  /// "LAUNCH-LEADER"; empty: there is none.
  /// Errors: kMismatch if a newer generation, or another one of this number, left its mark;
  /// kInvalidArgument if the folder cannot be made; kIo.
  WriterFence(const std::filesystem::path& dir, const std::string& job_id, int64_t generation,
              const std::string& token = "");

  // No moves: a fence always has a writer.
  WriterFence(const WriterFence&) = default;
  WriterFence& operator=(const WriterFence&) = default;

  /// Errors: kMismatch naming the newer generation; kIo if the folder cannot be listed. Cost: one
  /// listing of the folder, and a read of a mark. Outside of jobs it does nothing.
  void check() const;

 private:
  friend class internal::Writer;

  std::shared_ptr<const Writer> writer_;
};

}  // namespace lockstep
