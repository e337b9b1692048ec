#include "lockstep/train/callbacks/evaluation.h"

namespace lockstep {

bool evaluates_after(const SystemConfig& config, int64_t epoch) {
  return epoch >= config.val_start_epoch &&
         (epoch - config.val_start_epoch) % config.val_interval == 0;
}

void Evaluation::run(Trainer& trainer) {
  const auto& config = trainer.config();
  EvalHooks hooks;
  hooks.interrupted = [&] { return trainer.signalled(); };
  hooks.fault = [&](const std::string& line) { trainer.report_fault(line); };
  std::optional<EvalResult> result;
  {
    const AveragedWeights average(trainer);
    result = evaluate(trainer.model(), loader_, samplers_, trainer.group(), trainer.task(),
                      config.system.amp_level, hooks);
  }
  if (result) {
    trainer.evaluated(*result);
  } else {
    trainer.stop_if_signalled();
  }
}

void Evaluation::on_begin(Trainer& trainer) {
  const auto& state = trainer.state();
  const bool at_an_end = state.epoch > 0 && state.batch_in_epoch == 0;
  if (!at_an_end || state.metric_value) return;
  if (evaluates_after(trainer.config().system, state.epoch)) run(trainer);
}

void Evaluation::on_epoch(Trainer& trainer, const EpochReport& report) {
  const auto reason = trainer.stop_reason();
  if (reason == StopReason::kSigterm || reason == StopReason::kSigint) return;
  if (evaluates_after(trainer.config().system, report.epoch)) run(trainer);
}

void Evaluation::on_end(Trainer& trainer) {
  if (trainer.stop_reason() != StopReason::kMaxSteps) return;
  const auto& state = trainer.state();
  if (state.batch_in_epoch > 0 && !state.metric_value) run(trainer);
}

}  // namespace lockstep
