// `lockstep train --find-lr STEPS`.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "lockstep/base/file.h"
#include "lockstep/base/folder.h"
#include "lockstep/base/log.h"
#include "lockstep/error.h"
#include "lockstep/progress.h"
#include "lockstep/train/batch_share.h"
#include "lockstep/train/compute_device.h"
#include "lockstep/train/disk_work.h"
#include "lockstep/train/fetch/weights.h"
#include "lockstep/train/rank_change.h"
#include "lockstep/train/rate_finder.h"
#include "lockstep/train/run/run.h"
#include "lockstep/train/run/run_parts.h"
#include "lockstep/train/same_on_ranks.h"
#include "lockstep/train/setup.h"
#include "lockstep/train/signals.h"
#include "lockstep/train/trainer.h"

namespace lockstep::inline internal {
namespace {

/// Notes rate and loss of each optimizer step, and ends the search once higher rates tell nothing.
class RateSearch final : public Callback {
 public:
  void on_step(Trainer& trainer, const StepReport& report) override {
    const StepEnd end = report.updated   ? StepEnd::kUpdated
                        : report.dropped ? StepEnd::kDropped
                                         : StepEnd::kGoesOn;
    const auto loss = loss_.add(report.loss, end, report.items.value_or(1));
    if (!loss) return;
    points_.push_back({report.lr, *loss});
    smoothed_.add(*loss);
    if (smoothed_.has_diverged()) trainer.stop(StopReason::kMaxSteps);
  }
  const std::vector<RatePoint>& points() const { return points_; }

 private:
  std::vector<RatePoint> points_;
  SmoothedLoss smoothed_;
  StepLoss loss_;
};

/// They may write files, for a run that has a folder of results.
void warn_of_events(const Config& config) {
  const auto& task = config.model.task;
  const bool any = !config.callbacks.empty() ||
                   (task && (task->events.before_step || task->events.before_update));
  if (!any) return;
  log_warn(
      "the search calls no callbacks and no events of a recipe: if they change a step, the rates "
      "of the run may be others");
}

/// The run without evaluation and checkpoints, from its first weights, with a rate that rises.
Config config_of_search(Config config, int64_t steps) {
  const auto micro_steps = static_cast<double>(steps * config.train.gradient_accumulation_steps);
  config.scheduler.scheduler = "find_lr";
  config.scheduler.own =
      OwnPart<Schedule>{"find_lr", [=](const SchedulePoint& point) {
                          return rising_rate(point.step / std::max(1.0, micro_steps - 1));
                        }};
  config.scheduler.warmup_epochs = 0;
  config.scheduler.num_epochs = int64_t{1} << 30;
  config.train.max_steps = steps;
  config.parallel.scale_rate = RateScale::kNone;
  config.train.ema = false;
  config.train.early_stopping.reset();
  config.system.val_while_train = false;
  config.model.resume = false;
  return config;
}

/// Beside the folder of results, which stays as it is.
std::filesystem::path picture_of(const Config& config) {
  return without_slash(config.train.ckpt_save_dir).string() + ".find_lr.svg";
}

/// `factor`: what parallel.scale_rate multiplies scheduler.lr by in the run itself.
void show(const Config& config, const std::vector<RatePoint>& points, double factor) {
  fmt::print("{}", finder_table(points, factor));
  const auto picture = picture_of(config);
  try {
    if (picture.has_parent_path()) make_folder(picture.parent_path());
    write_file_atomically(picture, render_charts(config.model.name(), {finder_chart(points)}));
    fmt::print("Picture: {}\n", picture.string());
  } catch (const Error& error) {
    log_warn(fmt::format("no picture: {}", error.what()));
  }
}

/// A search ends where the loss is not finite any more. Errors: those of the first steps; no step
/// had a loss.
StopReason search(Trainer& trainer, const RateSearch& rates) {
  StopReason reason = StopReason::kMaxSteps;
  try {
    reason = trainer.fit();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDiverged || rates.points().empty()) throw;
  }
  if (reason == StopReason::kMaxSteps && rates.points().empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                "no step of the search had a loss: each was dropped, or its batches count 0 items");
  }
  return reason;
}

}  // namespace

int run_find_lr(const Config& given, World world, int64_t steps) {
  Config shared = given;
  check_world(shared, world);
  const std::string batch_note = share_global_batch(shared, world);
  if (!batch_note.empty() && world.rank == 0) log_warn(batch_note);
  const Config config = config_of_search(shared, steps);
  const auto limit = std::chrono::seconds(config.train.disk_timeout_s);
  const auto device = take_compute_device(config, world);
  set_threads(threads_of(config.parallel, world));
  auto group = ProcessGroup::create(world, group_options(config.parallel));
  check_same_config(given, group);
  do_disk_work(group, "weights to start from are downloaded", limit,
               [&] { fetch_pretrained(config, Deadline::after(limit)); });
  const RunExtras extras = extras_of(config);
  RunParts parts;
  do_disk_work(group, "data are indexed and weights are read", limit,
               [&] { parts = make_parts(config, world, device, false, extras); });
  check_same_samples(samples_of(parts.train), {}, group);
  check_same_teacher(parts.task->teacher_digest(), group);
  const SignalWatch signals;
  TrainerParts searched{config,
                        world.rank,
                        world.size,
                        group,
                        parts.model,
                        *parts.optimizer,
                        *parts.task,
                        *parts.train.loader,
                        parts.train.samplers,
                        [&] { return signals.pending(); },
                        parts.masters.get()};
  searched.job_goes_on = job_goes_on;
  searched.optimized = parts.optimized;
  searched.training_step = extras.training_step;
  searched.log_names = parts.log_names;
  searched.with_replacement = parts.train.with_replacement;
  Trainer trainer(std::move(searched), {});
  const auto rates = std::make_shared<RateSearch>();
  trainer.add(rates);
  if (world.rank == 0) {
    log_info(fmt::format("searching for a learning rate, in up to {} steps", steps));
    warn_of_events(config);
  }
  const StopReason reason = search(trainer, *rates);
  const int64_t batch = global_batch(config.train, trainer.virtual_ranks().total);
  const double factor = rate_factor(given.parallel, batch);
  if (world.rank == 0 && reason == StopReason::kMembership) {
    log_info("hosts joined or left this job: the search begins anew with the present ones");
  } else if (world.rank == 0 && !rates->points().empty()) {
    show(config, rates->points(), factor);
    if (extras.optimizer || extras.training_step) {
      fmt::print(
          "Groups with a rate of their own: multiply it by rate / {}; scheduler.lr alone has "
          "no effect on them\n",
          given.scheduler.lr * factor);
    }
  }
  const int signal = signal_of(reason);
  return signal == 0 ? 0 : 128 + signal;
}

}  // namespace lockstep::inline internal
