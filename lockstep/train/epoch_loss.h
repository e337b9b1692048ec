#pragma once
// The mean loss of an epoch, from sums in its TrainingState: so a run that resumes within an epoch
// has the mean of an uninterrupted one.

#include <cstdint>
#include <optional>

#include "lockstep/checkpoint_folder.h"

namespace lockstep::inline internal {

/// The loss of a report of the trainer.
struct ReportedLoss {
  double loss = 0;
  int64_t micro_steps = 1;
  std::optional<double> items{};  ///< See StepReport::items.
};

/// Adds a loss to the sums of the epoch, before batch_in_epoch counts it. A loss that is not finite
/// leaves the mean unchanged. If the run that began the epoch had no ItemCount and this one has it,
/// the mean is that of the batches since then.
void add_loss(TrainingState& state, const ReportedLoss& next);

/// The epoch's mean so far: over its items if they are counted, else over its batches. NaN of no
/// items; 0 of no batches.
double mean_loss(const TrainingState& state);

}  // namespace lockstep::inline internal
