#include "lockstep/train/log_lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "lockstep/parallel/module_state.h"
#include "lockstep/recipe.h"
#include "lockstep/train/rank_change.h"
#include "lockstep/train/task_parts.h"

namespace lockstep::inline internal {
namespace {

double images_per_s(int64_t batch_size, double step_ms) {
  return step_ms > 0 ? static_cast<double>(batch_size) * 1000 / step_ms : 0;
}

double mean_step_ms(const EpochReport& report) {
  return report.seconds * 1000 / static_cast<double>(std::max<int64_t>(1, report.steps));
}

double percent(double part, double whole) {
  return whole > 0 ? 100 * part / whole : 0;
}

/// Each of several parts may have its own cause, and the report has only the sum of their losses.
std::string cause_of_drop(const StepReport& report) {
  const std::string of = report.skipped.empty() ? "" : " of " + name_list(report.skipped);
  if (report.skipped.size() > 1) return fmt::format("loss or gradients{} are not finite", of);
  return std::isfinite(report.loss) ? fmt::format("gradients{} overflowed", of)
                                    : fmt::format("the loss{} is no finite number", of);
}

std::span<const std::pair<std::string, double>> shown_values(const StepReport& report) {
  return std::span(report.logged).last(report.shown);
}

/// A nan without its sign, so that its text is "nan".
double plain_nan(double value) {
  return std::isnan(value) ? std::abs(value) : value;
}

const std::string kRule(40, '=');

/// The section in MindOCR's format.
std::string scaler_dict(const Config& config) {
  const LossScalerConfig scaler = config.loss_scaler.value_or(LossScalerConfig());
  const auto scale = python_float(scaler.loss_scale);
  if (!scaler.dynamic) return fmt::format("{{'type': 'static', 'loss_scale': {}}}", scale);
  return fmt::format(
      "{{'type': 'dynamic', 'loss_scale': {}, 'scale_factor': {}, 'scale_window': {}}}", scale,
      python_float(scaler.scale_factor), scaler.scale_window);
}

}  // namespace

std::string mindocr_step_line(const StepReport& report, int64_t num_epochs, double step_ms,
                              int64_t batch_size) {
  std::string line = fmt::format(
      "epoch: [{}/{}] step: [{}/{}], loss: {:.6f}, lr: {:.6f}, per step time: {:.3f} ms, "
      "fps per card: {:.2f} img/s",
      report.epoch, num_epochs, report.step_in_epoch, report.steps_per_epoch,
      plain_nan(report.loss), report.lr, step_ms, images_per_s(batch_size, step_ms));
  for (const auto& [name, value] : shown_values(report)) {
    line += fmt::format(", {}: {:.6g}", name, plain_nan(value));
  }
  return line;
}

std::string mindocr_epoch_line(const EpochReport& report, int64_t num_epochs, int64_t batch_size) {
  const double step_ms = mean_step_ms(report);
  return fmt::format(
      "epoch: [{}/{}], loss: {:.6f}, epoch time: {:.3f} s, per step time: {:.3f} ms, "
      "fps per card: {:.2f} img/s, data wait: {:.1f} %, {}",
      report.epoch, num_epochs, plain_nan(report.loss), report.earlier_s + report.seconds, step_ms,
      images_per_s(batch_size, step_ms), percent(report.data_wait_s, report.seconds),
      report.waits.text());
}

std::string timings_line(const StepTimings& sum, int64_t steps, const WaitSums& waits) {
  const auto mean = [&](double all) { return all / static_cast<double>(steps); };
  return fmt::format(
      "Averaged steps: {}, mean: forward {:.2f} ms, backward {:.2f} ms, communication hidden in it "
      "{:.2f} ms, exposed {:.2f} ms, waiting for slower ranks {:.2f} ms",
      steps, mean(sum.forward - sum.buffers), mean(sum.backward), mean(sum.comm_hidden),
      mean(1000 * waits.moved_s()), mean(1000 * waits.waited_s()));
}

std::string dropped_line(const StepReport& report, int64_t num_epochs) {
  const LossScaleState scale = report.loss_scale.value_or(LossScaleState());
  return fmt::format("epoch: [{}/{}] step: [{}/{}], {}, update dropped ({} so far), loss scale: {}",
                     report.epoch, num_epochs, report.step_in_epoch, report.steps_per_epoch,
                     cause_of_drop(report), scale.overflows, python_float(scale.scale));
}

std::string no_items_line(const std::string& loss, int64_t epoch) {
  return fmt::format(
      "loss: '{}' counted no items in epoch {}, so nothing was trained: is its ignored class "
      "right?",
      loss, epoch);
}

std::string faults_line(int64_t faults, const char* what) {
  return fmt::format("{} sample{} could not be {}: each has a warning in the log of its rank",
                     faults, faults == 1 ? "" : "s", what);
}

std::vector<std::string> evaluation_warnings(const EvalResult& result) {
  std::vector<std::string> lines = result.warnings, undefined;
  bool infinite = false;
  const auto look_at = [&](const std::string& name, double value) {
    if (!std::isfinite(value)) undefined.push_back(name);
    infinite = infinite || std::isinf(value);
  };
  for (const auto& [name, value] : result.metrics) look_at(name, value);
  look_at("loss", result.loss.value_or(0));
  if (result.faults > 0) lines.push_back(faults_line(result.faults, "evaluated"));
  if (!undefined.empty()) {
    lines.push_back(fmt::format(
        "{} of this evaluation: {}. Such a figure makes no checkpoint the best, and for early "
        "stopping and reduce_on_plateau it is no improvement",
        fmt::join(undefined, ", "), infinite ? "not finite" : "nan"));
  }
  if (result.samples == 0) lines.emplace_back("no sample could be evaluated: the figures are 0");
  return lines;
}

std::string remarks_line(int64_t remarks) {
  return fmt::format(
      "{} time{} something was left out of a sample: the first are in the logs of "
      "the ranks",
      remarks, remarks == 1 ? "" : "s");
}

std::string mindspore_step_line(const StepReport& report) {
  std::string line = fmt::format("epoch: {} step: {}, loss is {}", report.epoch,
                                 report.step_in_epoch, static_cast<float>(plain_nan(report.loss)));
  for (const auto& [name, value] : shown_values(report)) {
    line += fmt::format(", {} is {}", name, static_cast<float>(plain_nan(value)));
  }
  return line;
}

std::string mindspore_epoch_line(const EpochReport& report) {
  return fmt::format("Train epoch time: {:5.3f} ms, per step time: {:5.3f} ms",
                     (report.earlier_s + report.seconds) * 1000, mean_step_ms(report));
}

const char* python_bool(bool value) {
  return value ? "True" : "False";
}

std::string python_float(double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  const std::string text = fmt::format("{}", value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string python_dict(const std::vector<std::pair<std::string, double>>& values) {
  std::string text = "{";
  for (const auto& [name, value] : values) {
    text += fmt::format("{}'{}': {}", text.size() > 1 ? ", " : "", name, python_float(value));
  }
  return text + "}";
}

std::string training_banner(const Config& config, const RunSummary& summary) {
  const auto& train = config.train;
  const int64_t batch = train.loader.batch_size;
  const int64_t accumulation = train.gradient_accumulation_steps;
  const int parts = summary.num_virtual_ranks;
  std::string text = "\n" + kRule + "\n";
  const auto line = [&](const char* label, const auto& value) {
    text += fmt::format("{}: {}\n", label, value);
  };
  line("Distribute", python_bool(summary.num_ranks > 1));
  line("Model", config.model.name());
  line("Total number of parameters", summary.parameters);
  line("Total number of trainable parameters", summary.trainable);
  line("Data root", task_parts(config).data_root(config));
  const auto* task = config.model.task.get();
  if (task != nullptr && (task->optimizer || task->training_step)) {
    line("Optimizer", "of " + task->name);
  } else {
    line("Optimizer", config.optimizer.opt);
    line("Weight decay", python_float(config.optimizer.weight_decay) + " ");
  }
  line("Batch size", batch);
  line("Num devices", summary.num_ranks);
  line("Gradient accumulation steps", accumulation);
  if (config.parallel.virtual_ranks > 0) line("Num virtual ranks", parts);
  line("Global batch size",
       fmt::format("{}x{}x{}={}", batch, parts, accumulation, global_batch(train, parts)));
  line("LR", python_float(config.scheduler.lr) + " ");
  line("Scheduler", config.scheduler.scheduler);
  line("Steps per epoch", summary.steps_per_epoch);
  line("Num epochs", config.scheduler.num_epochs);
  line("Clip gradient", python_bool(train.clip_grad));
  line("EMA", python_bool(train.ema));
  line("AMP level", to_string(config.system.amp_level));
  line("Loss scaler", scaler_dict(config));
  line("Drop overflow update", python_bool(drops_overflows(config)));
  return text + kRule + "\n\nStart training... (The first epoch takes longer, please wait...)\n";
}

std::string restart_line(const Config& config, const RunSummary& summary, int generation) {
  return fmt::format(
      "Started again (start {}). Num devices: {}, global batch size: {}x{}x{}={}, steps per epoch: "
      "{}; all else is as before",
      generation, summary.num_ranks, config.train.loader.batch_size, summary.num_virtual_ranks,
      config.train.gradient_accumulation_steps,
      global_batch(config.train, summary.num_virtual_ranks), summary.steps_per_epoch);
}

std::string evaluation_banner(const Config& config, const RunSummary& summary,
                              int64_t num_batches) {
  return fmt::format(
      "\n{}\nModel: {}\nTotal number of parameters: {}\nTotal number of trainable parameters: {}\n"
      "AMP level: {}\nNum batches: {}\nBatch size: {}\n{}{}\n\nStart evaluating...\n",
      kRule, config.model.name(), summary.parameters, summary.trainable,
      to_string(config.system.amp_level_infer), num_batches, config.eval->loader.batch_size,
      task_parts(config).evaluation_lines(config), kRule);
}

}  // namespace lockstep::inline internal
