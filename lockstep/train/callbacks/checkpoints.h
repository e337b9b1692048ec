#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/mutex.h"
#include "lockstep/checkpoint/background_writer.h"
#include "lockstep/deadline.h"
#include "lockstep/keep_policy.h"
#include "lockstep/train/log/training_log.h"
#include "lockstep/train/trainer.h"
#include "lockstep/train/weight_files.h"
#include "lockstep/training_checkpoint.h"

namespace lockstep {

/// system.ckpt_save_policy and ckpt_max_keep. Ranked by the main indicator (higher is better) or,
/// without evaluation, by the training loss (lower is better) of the epochs that are saved.
KeepPolicy keep_policy(const Config& config);

/// Saves after every epoch (see train.ckpt_save_epochs), every train.ckpt_save_steps steps, after
/// the step under way when SIGUSR1 comes, and at the end of the run, and keeps account of the best
/// weights. A checkpoint holds the step it was made at, so a resumed run goes on with the very next
/// one.
///
/// Rank 0 copies what is to be saved and trains on; a thread writes it, and nobody waits for that.
/// What it meets ends the run a step later, or at its end. Where the disk is slower than training,
/// copies wait for it in memory, up to kRoomBytes of them. Beyond that the oldest is not written,
/// unless it is the best so far or the newest; a warning says so once. So memory holds what waits,
/// or the best and the newest where those are more, and what is being written. One that is written
/// for longer than train.disk_timeout_s ends the run. At the end of a run all is written that was
/// not left out.
///
/// Weights are saved before they are evaluated: added before Evaluation, an epoch's checkpoint is
/// there whatever becomes of that, and its figure comes into state.json afterwards. With
/// train.weights_format the policy is that of the files of weights (see WeightFiles), and of the
/// checkpoints the newest and the best are kept.
class Checkpoints final : public Callback {
 public:
  static constexpr int64_t kRoomBytes = int64_t{256} << 20;

  /// `fence`: of this run's writer, on rank 0. For tests: `before_writing` is called by the thread
  /// that writes, for each checkpoint; `room_bytes`: what may wait for the disk.
  explicit Checkpoints(TrainingLog& log, const WriterFence& fence = {},
                       std::function<void()> before_writing = nullptr,
                       int64_t room_bytes = kRoomBytes)
      : log_(log),
        fence_(fence),
        before_writing_(std::move(before_writing)),
        room_bytes_(room_bytes) {}

  void on_start(Trainer& trainer) override;
  void on_step(Trainer& trainer, const StepReport& report) override;
  void on_evaluation(Trainer& trainer, const EvalResult& result) override;
  void on_epoch(Trainer& trainer, const EpochReport& report) override;
  void on_end(Trainer& trainer) override;
  void on_close(Trainer& trainer) override;

 private:
  /// Files of weights to write with a checkpoint.
  struct DueWeights {
    std::optional<EpochWeights> epoch;
    bool averaged = false;  ///< e{N} holds the moving average: evaluation took it.
    bool best = false;
  };
  using Content = std::shared_ptr<CheckpointContent>;
  /// Why a checkpoint is worth a line.
  struct Reasons {
    bool best = false;
    bool asked = false;  ///< By SIGUSR1.
  };
  /// What is to be written.
  struct Save {
    Content content;
    DueWeights due;
    Reasons reasons;
    std::filesystem::path dir;
    KeepPolicy policy;
    bool best() const { return reasons.best || due.best; }
  };

  void record(Trainer& trainer, double value);
  void save(Trainer& trainer);
  void put_in_line(Save save);
  void make_room() LOCKSTEP_REQUIRES(mutex_);
  bool merge_into_waiting(const DueWeights& due, const TrainingState& state, bool best);
  void write_next();
  void check_disk(const Config& config);
  void add_figure(Trainer& trainer);
  void write_unevaluated();
  DueWeights take_due_weights();
  void write_weights(const CheckpointContent& content, const DueWeights& due,
                     const std::filesystem::path& folder);
  void wait_for_disk(Trainer& trainer);
  void note_saved(const TrainingState& state, const std::filesystem::path& folder,
                  const Reasons& reasons);
  void say_notes(Trainer& trainer);
  static std::string best_is_saved(const TrainingState& state);
  void report_end(Trainer& trainer);
  std::string top_table(Trainer& trainer) const;

  TrainingLog& log_;
  WriterFence fence_;
  std::function<void()> before_writing_;
  int64_t room_bytes_;
  std::optional<int64_t> saved_step_;  // in this folder, or gone on from
  bool saved_here_ = false;            // by this run
  bool changed_ = false;               // an evaluation came after the last save
  bool new_best_ = false;
  bool asked_ = false;                      // by SIGUSR1, since the last save
  std::optional<double> value_;             // of this epoch, if it was evaluated
  std::optional<int64_t> unwritten_epoch_;  // whose file of weights is not written yet
  bool awaits_figure_ = false;              // that epoch is about to be evaluated
  Content saved_;                           // rank 0: of the weights as they are
  std::optional<WeightFiles> weights_;      // rank 0; the writer's, but for when it is idle
  Mutex mutex_;
  bool told_of_slow_disk_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  std::deque<Save> waiting_ LOCKSTEP_GUARDED_BY(mutex_);               // to be written
  std::optional<Deadline> writing_until_ LOCKSTEP_GUARDED_BY(mutex_);  // when that is too long
  std::vector<std::pair<Severity, std::string>> notes_ LOCKSTEP_GUARDED_BY(mutex_);
  std::vector<SavedCheckpoint> saved_folders_ LOCKSTEP_GUARDED_BY(mutex_);
  BackgroundWriter writer_;  // rank 0; last: its thread uses the above
};

}  // namespace lockstep
