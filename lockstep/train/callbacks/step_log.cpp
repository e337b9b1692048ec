#include "lockstep/train/callbacks/step_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "lockstep/base/clock.h"

namespace lockstep::inline internal {
namespace {

/// The shares of the whole run's time for data, other ranks, and communication.
std::string run_line(const EpochReport& sums) {
  const double percent = sums.seconds > 0 ? 100 / sums.seconds : 0;
  return fmt::format("Steps: {} in {:.3f} s, data wait: {:.1f} %, {}", sums.steps, sums.seconds,
                     sums.data_wait_s * percent, sums.waits.text());
}

int64_t batch_of_all(const Trainer& trainer) {
  return trainer.config().train.loader.batch_size * trainer.virtual_ranks().total;
}

int64_t batch_of_rank(const Trainer& trainer) {
  return trainer.config().train.loader.batch_size * trainer.virtual_ranks().count;
}

}  // namespace

void StepLog::on_start(Trainer& trainer) {
  const auto& config = trainer.config();
  if (drops_overflows(config) && !config.system.drop_overflow_update) {
    log_.info(kTrainLogger,
              "loss_scaler is dynamic: a step that overflows is left out, though "
              "system.drop_overflow_update is False");
  }
  began_ = RateMeter::Clock::now();
  first_step_ = trainer.state().step;
  rate_.start(began_);
  timer_.start(std::chrono::seconds(config.system.log_interval_seconds), LineTimer::Clock::now());
}

void LineTimer::start(std::chrono::seconds interval, Clock::time_point now) {
  interval_ = interval;
  due_ = now + std::min(interval, kFirst);
}

bool StepLog::line_due(const SystemConfig& system, const StepReport& report) {
  const auto now = LineTimer::Clock::now();
  const auto lines = [&](int64_t steps) { return steps / system.log_interval; };
  const int64_t before = report.step_in_epoch - report.micro_steps;
  if (lines(report.step_in_epoch) == lines(before) && !timer_.due(now)) return false;
  timer_.written(now);
  return true;
}

void StepLog::on_step(Trainer& trainer, const StepReport& report) {
  const auto& config = trainer.config();
  const int64_t batch = batch_of_rank(trainer);
  run_.steps += report.micro_steps;
  run_.seconds += report.step_s;
  run_.data_wait_s += report.data_wait_s;
  run_.waits.add(report.waits, report.step_s);
  if (report.timings.backward > 0) {
    timings_ += report.timings;
    ++averaged_;
  }
  since_line_s_ += report.step_s;
  since_line_ += report.micro_steps;
  if (!config.train.dataset_sink_mode && line_due(config.system, report)) {
    if (config.system.log_style == LogStyle::kMindspore) {
      log_.every_rank(mindspore_step_line(report));
    } else {
      const double step_ms = since_line_s_ * 1000 / static_cast<double>(since_line_);
      log_.info(kTrainLogger,
                mindocr_step_line(report, config.scheduler.num_epochs, step_ms, batch));
    }
    since_line_s_ = 0;
    since_line_ = 0;
  }
  for (const auto& line : report.faults) on_fault(trainer, line);
  show_remarks(report.remarks);
  if (report.dropped || !report.skipped.empty()) {
    log_.write(Severity::kWarning, kTrainLogger, dropped_line(report, config.scheduler.num_epochs));
  }
  rate_.add(batch_of_all(trainer) * report.micro_steps, RateMeter::Clock::now());
  if (log_.progress().active()) show_progress(trainer, report);
}

void StepLog::show_remarks(const std::vector<std::string>& remarks) {
  constexpr size_t kShown = 10;
  for (const auto& line : remarks) {
    if (remarks_.size() == kShown) return;
    if (remarks_.insert(line).second) log_.write(Severity::kWarning, kDataLogger, line);
  }
}

void StepLog::show_progress(Trainer& trainer, const StepReport& report) {
  const auto& config = trainer.config();
  const int64_t total = trainer.total_steps();
  Progress progress;
  progress.epoch = report.epoch;
  progress.num_epochs = config.scheduler.num_epochs;
  progress.step = report.optimizer_steps;
  progress.num_steps = total;
  progress.loss = report.loss;
  progress.lr = report.lr;
  progress.images_per_s = rate_.per_second();
  progress.left = estimate_left(report.optimizer_steps - first_step_,
                                total - report.optimizer_steps, RateMeter::Clock::now() - began_);
  progress.note = trainer.waits_note();
  log_.progress().update(progress);
}

void StepLog::on_epoch(Trainer& trainer, const EpochReport& report) {
  const auto& config = trainer.config();
  if (config.system.log_style == LogStyle::kMindspore) {
    log_.every_rank(mindspore_epoch_line(report));
  } else {
    log_.info(kTrainLogger,
              mindocr_epoch_line(report, config.scheduler.num_epochs, batch_of_rank(trainer)));
  }
  const auto* own_loss = std::get_if<OwnLoss>(&config.loss);
  if (own_loss != nullptr && report.items == 0.0 && !std::exchange(warned_of_no_items_, true)) {
    log_.write(Severity::kWarning, kTrainLogger, no_items_line(own_loss->name, report.epoch));
  }
  if (report.faults > 0) {
    log_.write(Severity::kWarning, kTrainLogger, faults_line(report.faults, "used"));
  }
  if (report.remarks != remarks_of_epoch_) {
    log_.write(Severity::kWarning, kTrainLogger, remarks_line(report.remarks));
  }
  remarks_of_epoch_ = report.remarks;
}

void StepLog::on_fault(Trainer&, const std::string& line) {
  log_.write(Severity::kWarning, kDataLogger, line);
}

void StepLog::on_evaluation_failed(Trainer&, const std::string& why) {
  log_.write(Severity::kWarning, kTrainLogger,
             fmt::format("evaluation failed, and the run goes on without its figure: {}", why));
  rate_.start(RateMeter::Clock::now());
}

void StepLog::on_evaluated(Trainer& trainer, const EvalState& state) {
  if (log_.progress().active()) log_.progress().update(to_progress(state, trainer.virtual_ranks()));
}

void StepLog::on_evaluation(Trainer& trainer, const EvalResult& result) {
  for (const auto& line : result.lines) log_.info(kTrainLogger, line);
  log_.info(kTrainLogger, fmt::format("Performance: {}, eval time: {}", python_dict(result.metrics),
                                      python_float(result.seconds)));
  for (const auto& note : trainer.watch_notes()) log_.info(kTrainLogger, note);
  for (const auto& line : evaluation_warnings(result)) {
    log_.write(Severity::kWarning, kTrainLogger, line);
  }
  rate_.start(RateMeter::Clock::now());
}

void StepLog::on_end(Trainer&) {
  log_.progress().finish();
  if (run_.steps > 0) log_.plain(run_line(run_));
  if (averaged_ > 0) {
    log_.plain(timings_line(timings_, averaged_, run_.waits));
  }
}

}  // namespace lockstep::inline internal
