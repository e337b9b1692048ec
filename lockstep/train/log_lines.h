#pragma once
// The lines of a run's log as pure functions: MindOCR's, byte for byte, and MindSpore's.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/ddp_options.h"
#include "lockstep/observe/rank_waits.h"
#include "lockstep/train.h"
#include "lockstep/train/config/config.h"
#include "lockstep/train/run_summary.h"

namespace lockstep::inline internal {

/// The results of one micro-step, averaged over ranks where that has a meaning. With training_step
/// all micro-steps of an optimizer step have one report.
struct StepReport {
  int64_t epoch = 1;          ///< From 1.
  int64_t step_in_epoch = 1;  ///< Micro-steps, from 1.
  int64_t steps_per_epoch = 1;
  int64_t micro_steps = 1;  ///< Of this report.
  int64_t samples = 0;      ///< Of all ranks.
  /// Of all ranks, by ItemCount: the loss and logged values are means over them, and 0 of none.
  /// Means of several reports weigh each by them. Nothing without ItemCount.
  std::optional<double> items{};
  int64_t optimizer_steps = 0;  ///< Done since the start of training.
  bool updated = false;         ///< This micro-step ended with an optimizer step.
  double loss = 0;              ///< Mean over ranks.
  double lr = 0;                ///< Of this step.
  double step_s = 0;
  double data_wait_s = 0;  ///< Included in step_s.
  StepTimings timings{};   ///< Included in step_s; empty unless gradients were averaged over ranks.
  StepWaits waits{};       ///< Of this rank.
  bool dropped = false;    ///< Loss or gradients overflowed: the optimizer step was skipped.
  /// With several optimizers: the parts of which an update was skipped, once each. `dropped` is
  /// then true if no part was updated.
  std::vector<std::string> skipped{};
  std::optional<double> grad_norm = std::nullopt;  ///< Before clipping; set only if it is clipped.
  /// The logged values of this micro-step, means over ranks. Those of several optimizers or of the
  /// task come first, then those of a loss or a recipe of one's own. NaN: also where some virtual
  /// rank logged none.
  std::vector<std::pair<std::string, double>> logged{};
  size_t shown = 0;  ///< So many of them, the last ones, stand in the log's line, too.
  /// After this step; none without a loss scaler.
  std::optional<LossScaleState> loss_scale = std::nullopt;
  std::vector<std::string> faults{};   ///< Of this rank's batch; see Batch::faults.
  int64_t faults_of_all = 0;           ///< Their number over all ranks.
  std::vector<std::string> remarks{};  ///< Of this rank's batch; see Batch::remarks.
  int64_t remarks_of_all = 0;
};

/// One epoch, or this run's part of it.
struct EpochReport {
  int64_t epoch = 1;
  int64_t steps = 0;  ///< Micro-steps.
  /// Mean over all the epoch's steps, including those before a resume, or over all their items; NaN
  /// of no items.
  double loss = 0;
  std::optional<double> items{};  ///< Of all those steps; see StepReport::items.
  double earlier_s = 0;           ///< Time of the epoch in earlier runs.
  double seconds = 0;  ///< Time of this run's steps; the following fields are of this run too.
  double data_wait_s = 0;
  WaitSums waits{};
  int64_t faults = 0;   ///< Samples that could not be used, of all ranks.
  int64_t remarks = 0;  ///< Parts left out of used samples, of all ranks.
};

/// "epoch: [1/5] step: [10/156], loss: 2.302585, lr: 0.004000, per step time: 105.123 ms, fps per
/// card: 304.41 img/s", and behind it ", box: 0.512345", six digits of each shown value. `step_ms`:
/// mean since the last such line; batch_size: of one rank.
std::string mindocr_step_line(const StepReport& report, int64_t num_epochs, double step_ms,
                              int64_t batch_size);
/// "epoch: [1/5], loss: ..., epoch time: ... s, per step time: ... ms, fps per card: ... img/s",
/// and, as our addition, ", data wait: 0.1 %, waiting for other ranks: 0.2 %, communication: 0.8 %"
/// (shares of the epoch's time; see WaitSums::text()).
std::string mindocr_epoch_line(const EpochReport& report, int64_t num_epochs, int64_t batch_size);

/// "Averaged steps: 156, mean: forward 10.12 ms, backward 20.34 ms, communication hidden in it 5.06
/// ms, exposed 0.71 ms, waiting for slower ranks 1.20 ms". `sum`, `waits`: over `steps` steps of
/// this rank. Time spent waiting is not exposed communication.
std::string timings_line(const StepTimings& sum, int64_t steps, const WaitSums& waits);

/// "epoch: [1/5] step: [10/156], gradients overflowed, update dropped (3 so far), loss scale:
/// 512.0"; or "the loss is no finite number". With StepReport::skipped: "gradients of 'judge'
/// overflowed", or of several "loss or gradients of 'judge', 'maker' are not finite".
std::string dropped_line(const StepReport& report, int64_t num_epochs);

/// Of an epoch without items, where the loss called `loss` counts them.
std::string no_items_line(const std::string& loss, int64_t epoch);
/// "3 samples could not be used, see the warnings above". `what`: "used", "evaluated".
std::string faults_line(int64_t faults, const char* what);
/// Warnings about an evaluation: its own; of samples that could not be evaluated, and of figures
/// that are nan.
std::vector<std::string> evaluation_warnings(const EvalResult& result);
/// "3 times something was left out of a sample ...".
std::string remarks_line(int64_t remarks);

/// "epoch: 1 step: 10, loss is 2.3025854": the loss as the shortest text of its float32. Behind it
/// ", box is 0.5123448" of each shown value.
std::string mindspore_step_line(const StepReport& report);
/// "Train epoch time: 1234.567 ms, per step time: 12.346 ms".
std::string mindspore_epoch_line(const EpochReport& report);

/// "{'acc': 0.6535, 'top_5': 0.97}", as Python prints a dict of floats.
std::string python_dict(const std::vector<std::pair<std::string, double>>& values);
const char* python_bool(bool value);  ///< "True" or "False".
/// "0.6535", "1.0", "1e-06", "nan".
std::string python_float(double value);

/// One record of several lines, starting with a new line. Of `summary` it needs parameters (with
/// batch norm's statistics), ranks, virtual ranks and steps per epoch.
std::string training_banner(const Config& config, const RunSummary& summary);
/// For restarted workers: the numbers that may have changed. The rest is in the banner of the first
/// start.
std::string restart_line(const Config& config, const RunSummary& summary, int generation);
/// Of `summary` it needs only the parameters.
std::string evaluation_banner(const Config& config, const RunSummary& summary, int64_t num_batches);

}  // namespace lockstep::inline internal
