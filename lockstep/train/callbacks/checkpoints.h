#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/mutex.h"
#include "lockstep/checkpoint/background_writer.h"
#include "lockstep/checkpoint_folder.h"
#include "lockstep/deadline.h"
#include "lockstep/train/log/training_log.h"
#include "lockstep/train/trainer.h"
#include "lockstep/train/weight_files.h"
#include "lockstep/training_checkpoint.h"

namespace lockstep::inline internal {

/// system.ckpt_save_policy and ckpt_max_keep. Checkpoints are ranked by the main indicator, as its
/// metric has it (see Metric::lower_is_better()). Without evaluation the training loss of the saved
/// epochs ranks them (lower is better). Not before Checkpoints::on_start().
KeepPolicy keep_policy(Trainer& trainer);

/// Saves after every epoch (see train.ckpt_save_epochs), every train.ckpt_save_steps steps, and at
/// the end of the run. SIGUSR1 saves after the current step. It also keeps account of the best
/// weights. A checkpoint holds the step it was made at, so a resumed run continues with the next
/// step.
///
/// Rank 0 copies the content and trains on; a background thread writes it. An error of that thread
/// ends the run a step later, or at the end of the run. If the disk is slower than training, copies
/// wait in memory, up to kRoomBytes. Beyond that the oldest copy is dropped, unless it is the best
/// so far or the newest; one warning reports it. Memory thus holds the waiting copies, at least the
/// best and the newest, and the one being written. A write that takes longer than
/// train.disk_timeout_s ends the run. At the end of a run all remaining copies are written.
///
/// Add it before Evaluation: an epoch's checkpoint is then saved even if the evaluation fails, and
/// its figure enters state.json afterwards. With train.weights_format the policy applies to the
/// files of weights (see WeightFiles). Of the checkpoints the newest and the best are kept.
class Checkpoints final : public Callback {
 public:
  static constexpr int64_t kRoomBytes = int64_t{256} << 20;

  /// `fence`: of this run's writer, on rank 0. For tests: the writing thread calls `before_writing`
  /// for each checkpoint; `room_bytes` bounds the copies that wait for the disk.
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
  void on_closed(Trainer& trainer) override;

 private:
  /// Files of weights to write with a checkpoint.
  struct DueWeights {
    std::optional<EpochWeights> epoch;
    bool averaged = false;  ///< e{N} holds the moving average: evaluation took it.
    bool best = false;
  };
  using Content = std::shared_ptr<CheckpointContent>;
  /// Why the log reports a checkpoint.
  struct Reasons {
    bool best = false;
    bool asked = false;  ///< By SIGUSR1.
  };
  /// One pending write.
  struct Save {
    Content content;
    DueWeights due;
    Reasons reasons;
    std::filesystem::path dir;
    KeepPolicy policy;
    bool best() const { return reasons.best || due.best; }
  };

  void take_best_kept(Trainer& trainer);
  std::optional<MetricPoint> name_best_kept(Trainer& trainer);
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
  std::string top_table(Trainer& trainer) const;

  TrainingLog& log_;
  WriterFence fence_;
  std::function<void()> before_writing_;
  int64_t room_bytes_;
  std::optional<int64_t> saved_step_;  // in this folder, or resumed from
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

}  // namespace lockstep::inline internal
