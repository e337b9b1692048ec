#pragma once

#include <span>

#include "lockstep/train/trainer.h"

namespace lockstep::inline internal {

/// Whether an epoch (from 1) is evaluated: every val_interval epochs from val_start_epoch on.
bool evaluates_after(const SystemConfig& config, int64_t epoch);

/// Evaluates after epochs as configured, and at the end of a run that max_steps ended within an
/// epoch. Weights that have been evaluated before are skipped. A signal ends a run without
/// evaluation, also at an epoch's end, and stops a running evaluation within one batch. The sender
/// may not wait, and the checkpoint comes first. The resumed run evaluates that epoch before its
/// first step.
///
/// Before the first step of a run every rank evaluates one batch and drops the result, so that
/// errors show before an epoch is spent. A later failure of an evaluation costs its figure and a
/// warning. It ends neither this run nor a resumed one that would fail again. A metric that gives
/// other figures than it announces ends both. Add it after Checkpoints: weights are saved before
/// they are evaluated.
class Evaluation final : public Callback {
 public:
  /// The caller keeps both alive while the trainer runs.
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

}  // namespace lockstep::inline internal
