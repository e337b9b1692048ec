#pragma once
// Learning rates as pure functions of the step.

#include <cstdint>
#include <string>

#include "lockstep/train/config/config.h"

namespace lockstep::inline internal {

/// The learning rate of micro-step `step`, from 0, in a run of `steps_per_epoch` micro-steps an
/// epoch. It is a fraction in an epoch that was dealt anew (see schedule_position()). With gradient
/// accumulation an optimizer step takes the rate of its last micro-step, so the schedule has one
/// length for any accumulation.
///
/// Let e = step / steps_per_epoch, rounded down with lr_epoch_stair, W = warmup_epochs.
/// - e < W: lr * (f + (1 - f) * e / W), f = warmup_factor. Then, with e counted from W, and
///   M = num_epochs - W:
/// - constant: lr
/// - cosine_decay = warmup_cosine_decay: min_lr + (lr - min_lr) / 2 * (1 + cos(pi * e / D)) for
///   D = decay_epochs, then min_lr; with num_cycles > 1 it restarts each D epochs from a peak that
///   is cycle_decay times the last one, and D becomes cycle_factor times as long.
/// - polynomial_decay: lr * (1 - e / M)^decay_rate
/// - exponential_decay: lr * decay_rate^e
/// - step_decay: lr * decay_rate^floor(floor(e) / D)
/// - multi_step_decay: lr * decay_rate^(milestones at or below floor(e))
/// - one_cycle (no warm-up of its own, by the step): cosine from lr / div_factor up to lr over the
///   first pct_start of the run, then down to lr / div_factor / final_div_factor at its last step.
///   Source: torch.optim.lr_scheduler.OneCycleLR, anneal_strategy 'cos'.
/// - reduce_on_plateau: lr * decay_rate^reductions, but not below min_lr. `reductions`: how often
///   its patience ran out so far (TrainingState::plateau).
/// - a registered one (SchedulePart): its own value, from the end of warm-up on.
/// A step behind num_epochs takes the rate of the last step.
/// Sources: MindOCR, mindocr/scheduler/dynamic_lr.py; Smith and Topin, arXiv:1708.07120.
double learning_rate(const SchedulerConfig& config, double step, int64_t steps_per_epoch,
                     int64_t reductions = 0);

/// A warning about a schedule, for the log; empty: none. It reports a warm-up that takes the whole
/// run, and a cosine whose warm-up and decay take longer than the run, as MindOCR does.
std::string schedule_note(const SchedulerConfig& config);

}  // namespace lockstep::inline internal
