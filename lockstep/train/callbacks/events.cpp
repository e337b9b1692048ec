#include "lockstep/train/callbacks/events.h"

#include <limits>

#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

std::string reason_text(StopReason reason) {
  switch (reason) {
    case StopReason::kEpochsDone:
      return "epochs done";
    case StopReason::kMaxSteps:
      return "max_steps";
    case StopReason::kEarlyStopping:
      return "early stopping";
    case StopReason::kSigterm:
      return "SIGTERM";
    case StopReason::kSigint:
      return "SIGINT";
    case StopReason::kSighup:
      return "SIGHUP";
    case StopReason::kMembership:
      return "membership";
  }
  return "";
}

MetricsRecord record_of(const std::string& kind, Trainer& trainer) {
  return {kind, epoch_of(trainer.state()), trainer.state().step, {}};
}

}  // namespace

void Events::on_start(Trainer& trainer) {
  if (trainer.rank() != 0) return;
  try {
    writer_.emplace(trainer.config().train.ckpt_save_dir / "events.jsonl",
                    std::numeric_limits<int64_t>::max(), labels_);
  } catch (const Error&) {  // Results reports a failing disk
    return;
  }
  const bool goes_on = again_ || trainer.state().step > 0;
  auto record = record_of(goes_on ? "restart" : "start", trainer);
  record.epoch = trainer.state().epoch + 1;  // the epoch that begins or resumes
  record.values = {{"ranks", trainer.num_ranks()}};
  if (goes_on) {
    const auto& lost = results_->lost();
    record.values.emplace_back("steps_lost", static_cast<double>(lost.steps));
    record.values.emplace_back("seconds_lost", rounded(lost.seconds, 3));
    record.values.emplace_back("seconds_idle", rounded(lost.idle_s, 3));
  }
  write(record);
}

void Events::on_evaluation(Trainer& trainer, const EvalResult& result) {
  auto record = record_of("evaluation", trainer);
  record.values = result.metrics;
  record.values.emplace_back("seconds", rounded(result.seconds, 3));
  write(record);
  if (!trainer.rate_reduced()) return;
  auto reduced = record_of("plateau", trainer);
  reduced.values = {{"reductions", static_cast<double>(trainer.state().plateau->times)}};
  write(reduced);
}

void Events::on_saved(Trainer& trainer, const SavedCheckpoint& saved) {
  auto record = record_of("checkpoint", trainer);
  record.epoch = saved.epoch;
  record.step = saved.step;
  record.texts = {{"path", saved.path}};
  record.values = {{"best", saved.best ? 1 : 0}};
  write(record);
}

void Events::on_close(Trainer& trainer) {
  auto record = record_of("end", trainer);
  record.texts = {{"reason", reason_text(trainer.stop_reason())}};
  write(record);
}

void Events::failed(Trainer& trainer, const std::string& what) {
  auto record = record_of("failure", trainer);
  record.texts = {{"error", what}};
  write(record);
}

void Events::write(const MetricsRecord& record) {
  if (!writer_) return;
  try {
    writer_->write(record);
  } catch (const Error&) {  // as above
  }
}

}  // namespace lockstep::inline internal
