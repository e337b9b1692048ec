#include "lockstep/train/callbacks/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "lockstep/base/log.h"
#include "lockstep/error.h"
#include "lockstep/observe/confusion.h"
#include "lockstep/train/epoch_loss.h"

namespace lockstep::inline internal {
namespace {

std::vector<std::string> metric_names(Trainer& trainer) {
  if (!trainer.config().system.val_while_train) return {};
  return trainer.task().metric_names();
}

/// In the mean over an optimizer step.
double weight_of(const StepReport& report) {
  return report.items.value_or(static_cast<double>(report.samples));
}

/// Durations below 0.1 us are noise.
double rounded_ms(double ms) {
  return rounded(ms, 4);
}

}  // namespace

void WholeStep::add(const StepReport& next) {
  const StepReport before = std::exchange(report_, next);
  const double wait_s = next.waits.waited_s + next.waits.others_s;
  if (before.samples > 0 && wait_s <= longest_wait_s_) {
    report_.waits.slowest = before.waits.slowest;
  }
  longest_wait_s_ = std::max(longest_wait_s_, wait_s);
  if (before.samples == 0) return;
  const double weights = weight_of(before) + weight_of(next);
  const double share = weights > 0 ? weight_of(before) / weights : 0;
  const auto mean = [&](double earlier, double& last) { last += (earlier - last) * share; };
  mean(before.loss, report_.loss);
  for (size_t i = 0; i < next.logged.size(); ++i) {
    mean(before.logged[i].second, report_.logged[i].second);
  }
  report_.samples += before.samples;
  if (next.items) report_.items = weights;
  report_.micro_steps += before.micro_steps;
  report_.step_s += before.step_s;
  report_.data_wait_s += before.data_wait_s;
  report_.timings += before.timings;
  report_.waits.waited_s += before.waits.waited_s;
  report_.waits.moved_s += before.waits.moved_s;
  report_.waits.others_s += before.waits.others_s;
}

StepReport WholeStep::take() {
  longest_wait_s_ = 0;
  return std::exchange(report_, {});
}

const std::vector<std::string>& step_fields() {
  static const std::vector<std::string> fields = {
      "kind",           "epoch",        "step",
      "time",           "run",          "host",
      "rank",           "loss",         "lr",
      "step_ms",        "data_wait_ms", "comm_exposed_ms",
      "images_per_s",   "forward_ms",   "backward_ms",
      "comm_hidden_ms", "comm_ms",      "rank_wait_ms",
      "others_wait_ms", "slowest_rank", "slowest_wait_ms",
      "grad_norm",      "loss_scale",   "dropped_steps"};
  return fields;
}

double rounded(double value, int places) {
  const double factor = std::pow(10.0, places);
  return std::round(value * factor) / factor;
}

void Results::on_start(Trainer& trainer) {
  if (trainer.rank() != 0) return;
  const auto& dir = trainer.config().train.ckpt_save_dir;
  keep([&] {
    fence_.check();
    metrics_.emplace(dir / "metrics.jsonl", trainer.state().step, labels_);
    lost_ = metrics_->lost();
  });
  keep([&] {
    result_log_.emplace(dir / "result.log", metric_names(trainer), trainer.state().epoch);
  });
  if (!trainer.config().system.tensorboard) return;
  keep([&] {
    events_ = std::make_unique<EventFile>(dir / "tensorboard", trainer.state().step + 1,
                                          labels_ ? labels_->host : "localhost",
                                          [fence = fence_] { fence.check(); });
  });
}

void Results::keep(const std::function<void()>& writing) {
  try {
    writing();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kMismatch) throw;  // a newer generation owns it
    if (!std::exchange(warned_, true)) log_warn(fmt::format("results are lost: {}", error.what()));
  }
}

void Results::write(const MetricsRecord& record) {
  if (metrics_) keep([&] { metrics_->write(record); });
  if (!events_) return;
  Scalars scalars;
  for (const auto& [name, value] : record.values) {
    scalars.emplace_back(fmt::format("{}/{}", record.kind, name), value);
  }
  keep([&] { events_->add(record.step, scalars); });
}

void Results::on_step(Trainer& trainer, const StepReport& last) {
  has_part_ = true;
  if (!metrics_) return;
  whole_.add(last);
  if (!last.updated && !last.dropped) return;
  const StepReport report = whole_.take();
  if (!last.updated) return;
  const auto images = static_cast<double>(report.samples);
  MetricsRecord record{
      "train",
      report.epoch,
      report.optimizer_steps,
      {{"loss", report.loss},
       {"lr", report.lr},
       {"step_ms", rounded_ms(report.step_s * 1000)},
       {"data_wait_ms", rounded_ms(report.data_wait_s * 1000)},
       {"comm_exposed_ms", rounded_ms(report.timings.comm_exposed)},
       {"images_per_s", report.step_s > 0 ? rounded(images / report.step_s, 2) : 0}}};
  if (trainer.num_ranks() > 1) {
    record.values.emplace_back("forward_ms", rounded_ms(report.timings.forward));
    record.values.emplace_back("backward_ms", rounded_ms(report.timings.backward));
    record.values.emplace_back("comm_hidden_ms", rounded_ms(report.timings.comm_hidden));
    record.values.emplace_back("comm_ms", rounded_ms(report.waits.moved_s * 1000));
    record.values.emplace_back("rank_wait_ms", rounded_ms(report.waits.waited_s * 1000));
    record.values.emplace_back("others_wait_ms", rounded_ms(report.waits.others_s * 1000));
    record.values.emplace_back("slowest_rank", report.waits.slowest);
  }
  if (trainer.num_ranks() > 1 && trainer.config().parallel.measure_wait) {
    record.values.emplace_back("slowest_wait_ms", rounded_ms(report.timings.slowest_wait));
  }
  for (const auto& [name, value] : report.logged) record.values.emplace_back(name, value);
  if (report.grad_norm) record.values.emplace_back("grad_norm", *report.grad_norm);
  if (report.loss_scale) {
    record.values.emplace_back("loss_scale", report.loss_scale->scale);
    record.values.emplace_back("dropped_steps", static_cast<double>(report.loss_scale->overflows));
  }
  write(record);
}

void Results::on_evaluation(Trainer& trainer, const EvalResult& result) {
  const auto& state = trainer.state();
  const int64_t epoch = epoch_of(state);
  MetricsRecord record{"eval", epoch, state.step, result.metrics};
  if (result.loss) record.values.emplace_back("loss", *result.loss);
  record.values.emplace_back("samples", static_cast<double>(result.samples));
  record.values.emplace_back("seconds", rounded(result.seconds, 3));
  write(record);
  write_confused(trainer);
  if (!result_log_) return;
  ResultRow row{.epoch = epoch, .metrics = {}, .eval_time = result.seconds};
  for (const auto& [name, value] : result.metrics) row.metrics.emplace_back(value);
  keep([&] {
    fence_.check();  // records are only appended, and an append to a replaced file goes unnoticed
    result_log_->add_evaluation(row);
  });
}

void Results::write_confused(Trainer& trainer) {
  const Confusion* confusion = trainer.task().confusion();
  if (confusion == nullptr || trainer.rank() != 0) return;
  const auto& config = trainer.config();
  keep([&] {
    fence_.check();
    write_confusion(config.train.ckpt_save_dir, "confusion",
                    fmt::format("{}, epoch {}: {} samples", config.model.name(),
                                epoch_of(trainer.state()), confusion->samples()),
                    *confusion, classes_);
  });
}

void Results::write_row(Trainer& trainer, ResultRow row) {
  has_part_ = false;
  if (!result_log_) return;
  row.metrics.resize(metric_names(trainer).size());
  keep([&] { result_log_->write(row); });
}

void Results::on_epoch(Trainer& trainer, const EpochReport& report) {
  write_row(trainer,
            {report.epoch, report.loss, {}, report.earlier_s + report.seconds, std::nullopt});
}

/// Writes the row of an epoch in which the run ended. A resumed run removes it again.
void Results::on_end(Trainer& trainer) {
  const auto& state = trainer.state();
  if (state.batch_in_epoch == 0 || !has_part_) return;
  write_row(trainer, {state.epoch + 1, mean_loss(state), {}, state.epoch_seconds, std::nullopt});
}

}  // namespace lockstep::inline internal
