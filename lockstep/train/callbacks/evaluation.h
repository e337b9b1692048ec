#pragma once

#include <span>

#include "lockstep/train/trainer.h"

namespace lockstep {

/// Whether an epoch (from 1) is evaluated: from val_start_epoch on, each val_interval.
bool evaluates_after(const SystemConfig& config, int64_t epoch);

/// Evaluates after epochs as the configuration says, and at the end of a run that max_steps ended
/// within an epoch, unless these weights have been evaluated before. A signal ends a run without
/// evaluation, also at an epoch's end, and ends an evaluation under way within a batch: who sent it
/// may not wait, and the checkpoint comes first. The run that goes on from there evaluates that
/// epoch before its first step.
///
/// Before the first step of a run one batch is evaluated on every rank, so that what cannot work is
/// known before an epoch is spent. What it gives is dropped. An evaluation that fails later costs
/// its figure and a warning: neither the run, nor a run that would go on from there and fail again.
/// Add it behind Checkpoints: weights are saved before they are evaluated.
class Evaluation final : public Callback {
 public:
  /// The caller keeps them while the trainer runs.
  Evaluation(BatchSource& loader, std::span<const DistributedSampler> samplers)
      : loader_(loader), samplers_(samplers) {}

  void on_begin(Trainer& trainer) override;
  void on_epoch(Trainer& trainer, const EpochReport& report) override;
  void on_end(Trainer& trainer) override;

 private:
  void run(Trainer& trainer);
  void try_out(Trainer& trainer);

  BatchSource& loader_;
  std::span<const DistributedSampler> samplers_;
};

}  // namespace lockstep
