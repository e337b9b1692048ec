#pragma once

#include <set>

#include "lockstep/observe/rate_meter.h"
#include "lockstep/train/log/training_log.h"
#include "lockstep/train/trainer.h"

namespace lockstep {

/// Writes the lines of steps, epochs and evaluations in the configured style, at the end what
/// part of the time waiting and communication took, and keeps the progress line of a terminal.
class StepLog final : public Callback {
 public:
  explicit StepLog(TrainingLog& log) : log_(log) {}

  void on_start(Trainer& trainer) override;
  void on_step(Trainer& trainer, const StepReport& report) override;
  void on_epoch(Trainer& trainer, const EpochReport& report) override;
  void on_evaluation(Trainer& trainer, const EvalResult& result) override;
  void on_fault(Trainer& trainer, const std::string& line) override;
  void on_end(Trainer& trainer) override;

 private:
  void show_progress(Trainer& trainer, const StepReport& report);
  void show_remarks(const std::vector<std::string>& remarks);

  TrainingLog& log_;
  RateMeter rate_;
  double since_line_s_ = 0;  // time and number of the steps since the last printed line
  int64_t since_line_ = 0;
  EpochReport run_;      // sums over all steps
  StepTimings timings_;  // the same, over those whose gradients were averaged
  int64_t averaged_ = 0;
  std::set<std::string> remarks_;  // those that were shown: they come again every epoch
  int64_t remarks_of_epoch_ = 0;   // as it was told last
};

}  // namespace lockstep
