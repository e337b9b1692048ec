#include "lockstep/train/callbacks/evaluation.h"

#include <chrono>

#include "lockstep/error.h"
#include "lockstep/progress.h"

namespace lockstep::inline internal {

bool evaluates_after(const SystemConfig& config, int64_t epoch) {
  return epoch >= config.val_start_epoch &&
         (epoch - config.val_start_epoch) % config.val_interval == 0;
}

void Evaluation::run(Trainer& trainer) {
  const auto& config = trainer.config();
  EvalHooks hooks;
  hooks.disk_limit = std::chrono::seconds(config.train.disk_timeout_s);
  hooks.interrupted = [&] { return trainer.signalled(); };
  hooks.fault = [&](const std::string& line) { trainer.report_fault(line); };
  hooks.evaluated = [&](const EvalState& state) { trainer.report_evaluated(state); };
  std::optional<EvalResult> result;
  try {
    const ReportedWork work("evaluation");
    const AveragedWeights average(trainer);
    trainer.evaluates();
    result = evaluate(trainer.model(), loader_, samplers_, trainer.group(), trainer.task(),
                      config.system.amp_level, hooks);
  } catch (const EvaluationFailed& error) {
    return trainer.evaluation_failed(error.what());
  }
  if (result) {
    trainer.evaluated(*result);
  } else {
    trainer.stop_if_signalled();
  }
}

void Evaluation::try_out(Trainer& trainer) {
  EvalHooks hooks;
  hooks.disk_limit = std::chrono::seconds(trainer.config().train.disk_timeout_s);
  hooks.max_batches = 1;
  try {
    const AveragedWeights average(trainer);
    const auto result = evaluate(trainer.model(), loader_, samplers_, trainer.group(),
                                 trainer.task(), trainer.config().system.amp_level, hooks);
    if (result) trainer.check_watched_values(*result);
  } catch (const Error& error) {
    throw Error(error.code(),
                std::string("evaluation, tried with one batch before training: ") + error.what());
  }
}

void Evaluation::on_begin(Trainer& trainer) {
  const auto& state = trainer.state();
  if (state.samples == 0) return try_out(trainer);
  const bool at_an_end = state.epoch > 0 && state.epoch_samples == 0;
  if (!at_an_end || state.metric_value) return;
  if (evaluates_after(trainer.config().system, state.epoch)) run(trainer);
}

void Evaluation::on_epoch(Trainer& trainer, const EpochReport& report) {
  if (signal_of(trainer.stop_reason()) != 0) return;
  if (evaluates_after(trainer.config().system, report.epoch)) run(trainer);
}

void Evaluation::on_end(Trainer& trainer) {
  if (trainer.stop_reason() != StopReason::kMaxSteps) return;
  const auto& state = trainer.state();
  if (state.epoch_samples > 0 && !state.metric_value) run(trainer);
}

}  // namespace lockstep::inline internal
