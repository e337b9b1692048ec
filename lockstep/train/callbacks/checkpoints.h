#pragma once

#include <optional>

#include "lockstep/checkpoint/keep_policy.h"
#include "lockstep/train/log/training_log.h"
#include "lockstep/train/trainer.h"
#include "lockstep/train/weight_files.h"

namespace lockstep {

/// system.ckpt_save_policy and ckpt_max_keep. Ranked by the main indicator (higher is better) or,
/// without evaluation, by the training loss (lower is better).
KeepPolicy keep_policy(const Config& config);

/// Saves after every epoch, every train.ckpt_save_steps steps and at the end of the run, and keeps
/// account of the best weights. Rank 0 writes; the others wait for it. A checkpoint holds the step
/// it was made at, so a resumed run goes on with the very next one.
/// With train.weights_format the policy is that of the files of weights (see WeightFiles), and of
/// the checkpoints the newest and the best are kept.
class Checkpoints final : public Callback {
 public:
  explicit Checkpoints(TrainingLog& log) : log_(log) {}

  void on_start(Trainer& trainer) override;
  void on_begin(Trainer& trainer) override;
  void on_step(Trainer& trainer, const StepReport& report) override;
  void on_evaluation(Trainer& trainer, const EvalResult& result) override;
  void on_epoch(Trainer& trainer, const EpochReport& report) override;
  void on_end(Trainer& trainer) override;

 private:
  void record(Trainer& trainer, double value);
  void save(Trainer& trainer);
  void save_epoch_weights(Trainer& trainer, int64_t epoch);
  void report_end(Trainer& trainer);
  std::string top_table(Trainer& trainer) const;

  TrainingLog& log_;
  std::optional<int64_t> saved_step_;
  bool changed_ = false;  // an evaluation came after the last save
  bool new_best_ = false;
  std::optional<double> value_;         // of this epoch, if it was judged
  std::optional<WeightFiles> weights_;  // rank 0
};

}  // namespace lockstep
