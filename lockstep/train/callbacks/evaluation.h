#pragma once

#include <optional>

#include "lockstep/train/trainer.h"

namespace lockstep {

/// Whether an epoch (from 1) is evaluated: from val_start_epoch on, each val_interval.
bool evaluates_after(const SystemConfig& config, int64_t epoch);

/// Evaluates after epochs as the configuration says, and once at the end of a run that max_steps
/// ended within an epoch. A signal ends a run without evaluation, also at an epoch's end: who sent
/// it may not wait, and the checkpoint comes first.
class Evaluation final : public Callback {
 public:
  Evaluation(Loader& loader, DistributedSampler& sampler) : loader_(loader), sampler_(sampler) {}

  void on_epoch(Trainer& trainer, const EpochReport& report) override;
  void on_end(Trainer& trainer) override;

 private:
  void run(Trainer& trainer);

  Loader& loader_;
  DistributedSampler& sampler_;
  std::optional<int64_t> last_step_;  // whose weights were evaluated last
};

}  // namespace lockstep
