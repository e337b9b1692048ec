#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/checkpoint_folder.h"
#include "lockstep/observe/event_file.h"
#include "lockstep/observe/metrics.h"
#include "lockstep/observe/result_log.h"
#include "lockstep/train/trainer.h"

namespace lockstep::inline internal {

/// The report of an optimizer step from those of its micro-steps. Losses and logged values are
/// means by samples, or by items if these are counted; of no items they are 0. So a value is NaN
/// where one of a micro-step is. Times are sums, and the slowest rank is that of the longest wait.
/// All else is the last one's.
class WholeStep {
 public:
  void add(const StepReport& next);
  /// The report so far; then begins the next optimizer step.
  StepReport take();

 private:
  StepReport report_;
  double longest_wait_s_ = 0;
};

/// The fields that a record of an optimizer step in metrics.jsonl has, or may have, beside logged
/// values; also those of the record itself.
const std::vector<std::string>& step_fields();

/// On rank 0: metrics.jsonl (each optimizer step and evaluation) and result.log (each epoch, and
/// the part of one in which a run ended), in train.ckpt_save_dir. A resumed run appends to the
/// files it finds. With system.tensorboard the folder `tensorboard` gets the records, too. The last
/// evaluation of a classifier leaves confusion.csv and confusion.svg. A row is written before its
/// epoch is saved and evaluated; its figures are added later. A write error costs one warning and
/// never ends the run. Add it before Checkpoints: the results then already include a checkpoint's
/// steps.
class Results final : public Callback {
 public:
  /// With labels each record of metrics.jsonl names its time and its run. `fence`: of this run's
  /// writer. Once a newer generation writes, no file is replaced, and TensorBoard's gets no more.
  /// `classes`: see DataParts. Errors of the calls that write: kMismatch.
  explicit Results(std::optional<MetricsLabels> labels = std::nullopt,
                   const WriterFence& fence = {}, std::vector<std::string> classes = {})
      : labels_(std::move(labels)), fence_(fence), classes_(std::move(classes)) {}

  void on_start(Trainer& trainer) override;
  void on_step(Trainer& trainer, const StepReport& report) override;
  void on_evaluation(Trainer& trainer, const EvalResult& result) override;
  void on_epoch(Trainer& trainer, const EpochReport& report) override;
  void on_end(Trainer& trainer) override;
  /// After on_start: the steps lost since the checkpoint from which the run resumed.
  const MetricsWriter::Lost& lost() const { return lost_; }

 private:
  void write(const MetricsRecord& record);
  void write_confused(Trainer& trainer);
  void write_row(Trainer& trainer, ResultRow row);
  void keep(const std::function<void()>& writing);

  std::optional<MetricsLabels> labels_;
  WriterFence fence_;
  std::vector<std::string> classes_;
  MetricsWriter::Lost lost_;
  std::optional<MetricsWriter> metrics_;
  std::optional<ResultLog> result_log_;
  std::unique_ptr<EventFile> events_;
  bool warned_ = false;
  bool has_part_ = false;  // steps came since an epoch's end
  WholeStep whole_;        // the optimizer step that is not done yet
};

/// Rounded to `places` decimals.
double rounded(double value, int places);

}  // namespace lockstep::inline internal
