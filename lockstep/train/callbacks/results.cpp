#include "lockstep/train/callbacks/results.h"

namespace lockstep {
namespace {

std::vector<std::string> metric_names(Trainer& trainer) {
  if (!trainer.config().system.val_while_train) return {};
  return trainer.task().metric_names();
}

}  // namespace

void Results::on_start(Trainer& trainer) {
  if (trainer.rank() != 0) return;
  const auto& dir = trainer.config().train.ckpt_save_dir;
  metrics_.emplace(dir / "metrics.jsonl", trainer.state().step);
  result_log_.emplace(dir / "result.log", metric_names(trainer), trainer.state().epoch);
}

void Results::on_begin(Trainer& trainer) {
  if (!evaluation_) return;
  ResultRow row;
  row.epoch = trainer.state().epoch;
  add_evaluation(trainer, row);
  if (result_log_) result_log_->add_evaluation(row);
}

void Results::on_step(Trainer& trainer, const StepReport& report) {
  if (!metrics_ || !report.updated) return;
  const auto images =
      static_cast<double>(trainer.config().train.loader.batch_size * trainer.shards().total);
  MetricsRecord record{"train",
                       report.epoch,
                       report.optimizer_steps,
                       {{"loss", report.loss},
                        {"lr", report.lr},
                        {"step_ms", report.step_s * 1000},
                        {"data_wait_ms", report.data_wait_s * 1000},
                        {"comm_exposed_ms", report.timings.comm_exposed},
                        {"images_per_s", report.step_s > 0 ? images / report.step_s : 0}}};
  if (trainer.num_ranks() > 1) {
    record.values.emplace_back("forward_ms", report.timings.forward);
    record.values.emplace_back("backward_ms", report.timings.backward);
    record.values.emplace_back("comm_hidden_ms", report.timings.comm_hidden);
  }
  if (trainer.num_ranks() > 1 && trainer.config().parallel.measure_wait) {
    record.values.emplace_back("slowest_wait_ms", report.timings.slowest_wait);
  }
  if (report.loss_scale) {
    record.values.emplace_back("loss_scale", report.loss_scale->scale);
    record.values.emplace_back("dropped_steps", static_cast<double>(report.loss_scale->overflows));
  }
  metrics_->write(record);
}

void Results::on_evaluation(Trainer& trainer, const EvalResult& result) {
  evaluation_ = result;
  if (!metrics_) return;
  MetricsRecord record{"eval", trainer.state().epoch, trainer.state().step, {}};
  if (trainer.state().batch_in_epoch > 0) ++record.epoch;  // within an epoch
  record.values = result.metrics;
  if (result.loss) record.values.emplace_back("loss", *result.loss);
  record.values.emplace_back("samples", static_cast<double>(result.samples));
  record.values.emplace_back("seconds", result.seconds);
  metrics_->write(record);
}

void Results::on_epoch(Trainer& trainer, const EpochReport& report) {
  if (result_log_) {
    ResultRow row{report.epoch, report.loss, {}, report.seconds, std::nullopt};
    add_evaluation(trainer, row);
    result_log_->write(row);
  }
  evaluation_.reset();
}

/// Where there was one; it belongs to this row alone.
void Results::add_evaluation(Trainer& trainer, ResultRow& row) {
  const auto evaluation = std::exchange(evaluation_, std::nullopt);
  const auto names = metric_names(trainer);
  row.metrics.resize(names.size());
  if (!evaluation) return;
  for (size_t i = 0; i < names.size(); ++i) row.metrics[i] = evaluation->metrics[i].second;
  row.eval_time = evaluation->seconds;
}

}  // namespace lockstep
