#pragma once

#include <chrono>
#include <set>

#include "lockstep/observe/rate_meter.h"
#include "lockstep/train/log/training_log.h"
#include "lockstep/train/trainer.h"

namespace lockstep::inline internal {

/// Decides when a line is due after a long silence: soon after the start, then at each interval.
/// The caller passes the time.
class LineTimer {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kFirst{5};

  /// `interval` 0: never.
  void start(std::chrono::seconds interval, Clock::time_point now);
  bool due(Clock::time_point now) const { return interval_.count() > 0 && now >= due_; }
  void written(Clock::time_point now) { due_ = now + interval_; }

 private:
  std::chrono::seconds interval_{0};
  Clock::time_point due_{};
};

/// Writes the lines of steps, epochs and evaluations in the configured style. At the end it reports
/// the share of waiting and communication. It also keeps the progress line of a terminal.
class StepLog final : public Callback {
 public:
  explicit StepLog(TrainingLog& log) : log_(log) {}

  void on_start(Trainer& trainer) override;
  void on_step(Trainer& trainer, const StepReport& report) override;
  void on_epoch(Trainer& trainer, const EpochReport& report) override;
  void on_evaluation(Trainer& trainer, const EvalResult& result) override;
  void on_evaluation_failed(Trainer& trainer, const std::string& why) override;
  void on_fault(Trainer& trainer, const std::string& line) override;
  void on_evaluated(Trainer& trainer, const EvalState& state) override;
  void on_end(Trainer& trainer) override;

 private:
  bool line_due(const SystemConfig& system, const StepReport& report);
  void show_progress(Trainer& trainer, const StepReport& report);
  void show_remarks(const std::vector<std::string>& remarks);

  TrainingLog& log_;
  RateMeter rate_;
  RateMeter::Clock::time_point began_{};
  int64_t first_step_ = 0;   // optimizer steps before it began
  double since_line_s_ = 0;  // time and number of the steps since the last printed line
  int64_t since_line_ = 0;
  LineTimer timer_;
  EpochReport run_;      // sums over all steps
  StepTimings timings_;  // the same, over those whose gradients were averaged
  int64_t averaged_ = 0;
  std::set<std::string> remarks_;  // already shown: they repeat every epoch
  int64_t remarks_of_epoch_ = 0;   // as last reported
  bool warned_of_no_items_ = false;
};

}  // namespace lockstep::inline internal
