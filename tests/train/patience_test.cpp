// Schedules and ends that follow a metric: reduce_on_plateau and early stopping.

#include "lockstep/train/patience.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lockstep/train/callbacks/checkpoints.h"
#include "lockstep/train/callbacks/events.h"
#include "lockstep/train/callbacks/results.h"
#include "lockstep/train/log/training_log.h"
#include "lockstep/training_checkpoint.h"
#include "tests/support/error_of.h"
#include "tests/support/read_metrics.h"
#include "tests/support/temp_folder.h"
#include "tests/train/tiny.h"

namespace lockstep {
namespace {

TEST(Patience, RunsOutAfterSoManyValuesInARow) {
  const PatienceConfig config{"acc", 2, 0};
  auto state = begin_patience(config, true, {});
  EXPECT_FALSE(note_value(state, config, 0.5));
  EXPECT_FALSE(note_value(state, config, 0.5)) << "an equal value is no improvement";
  EXPECT_FALSE(note_value(state, config, 0.6));
  EXPECT_EQ(state.waited, 0);
  EXPECT_FALSE(note_value(state, config, 0.4));
  EXPECT_TRUE(note_value(state, config, std::numeric_limits<double>::quiet_NaN()));
  EXPECT_EQ(state.best, 0.6);
}

TEST(Patience, AnInfiniteFigureIsNoImprovement) {
  const PatienceConfig config{"psnr", 2, 0};
  auto state = begin_patience(config, true, {});
  EXPECT_FALSE(note_value(state, config, HUGE_VAL));
  EXPECT_FALSE(note_value(state, config, 30)) << "it is the first one";
  EXPECT_EQ(state.best, 30);
  EXPECT_EQ(state.waited, 0);
}

TEST(Patience, LessIsBetterWhereLowerIsAndSmallGainsDoNotCount) {
  const PatienceConfig config{"loss", 1, 0.125};
  auto state = begin_patience(config, false, {});
  EXPECT_FALSE(note_value(state, config, 2));
  EXPECT_FALSE(note_value(state, config, 1.5));
  EXPECT_TRUE(note_value(state, config, 1.375));
  EXPECT_FALSE(note_value(state, config, 1.25));
  EXPECT_EQ(state.best, 1.25);
}

TEST(Patience, AnotherMetricBeginsAnewButTheRateStaysReduced) {
  const PatienceState saved{"loss", 0.5, 3, 2, false};
  EXPECT_EQ(begin_patience({"loss", 5, 0}, false, saved), saved);
  EXPECT_EQ(begin_patience({"acc", 5, 0}, true, saved), (PatienceState{"acc", {}, 0, 2}));
}

TEST(Patience, AnotherDirectionOfTheMetricBeginsAnew) {
  const PatienceState saved{"error", 0.5, 3, 2};
  EXPECT_EQ(begin_patience({"error", 5, 0}, false, saved),
            (PatienceState{"error", {}, 0, 2, false}));
}

/// Gives the epochs their figures: those of `values`, then the last of them. The end of max_steps
/// within an epoch gets a better one, which must not count.
class Figures final : public Callback {
 public:
  explicit Figures(std::vector<double> values) : values_(std::move(values)) {}
  void on_epoch(Trainer& trainer, const EpochReport& report) override {
    const auto index = std::min(values_.size(), static_cast<size_t>(report.epoch)) - 1;
    give(trainer, values_[index]);
    notes_ += trainer.watch_notes().empty() ? "" : trainer.watch_notes().front();
  }
  void on_end(Trainer& trainer) override {
    if (trainer.state().epoch_samples > 0) give(trainer, 0.9);
  }
  const std::string& notes() const { return notes_; }

 private:
  static void give(Trainer& trainer, double value) {
    EvalResult result;
    result.metrics = {{"acc", value}, {"top_5", 1}};
    result.loss = 1 - value;
    trainer.evaluated(result);
  }

  std::vector<double> values_;
  std::string notes_;
};

Config plateau_config() {
  auto config = tiny_config();
  config.system.val_while_train = true;
  config.scheduler.scheduler = "reduce_on_plateau";
  config.scheduler.lr = 0.04;
  config.scheduler.min_lr = 0.015;
  config.scheduler.decay_rate = 0.5;
  config.scheduler.num_epochs = 7;
  config.scheduler.plateau = {"acc", 2, 0};
  return config;
}

/// The rates of the epochs, 6 steps each.
std::vector<double> rates_of(const TinyRun& run) {
  std::vector<double> rates;
  for (size_t i = 0; i < run.lrs.size(); i += 6) rates.push_back(run.lrs[i]);
  return rates;
}

TinyHooks with_figures(const std::vector<double>& values) {
  TinyHooks hooks;
  hooks.add_callbacks = [=](Trainer& trainer) { trainer.add(std::make_shared<Figures>(values)); };
  return hooks;
}

TEST(Plateau, TheRateFallsWhenTheMetricNoLongerImproves) {
  auto config = plateau_config();
  config.train.loader.batch_size = 2;
  const auto runs = run_tiny(2, config, with_figures({0.1, 0.2, 0.2, 0.15, 0.1}));
  const std::vector<double> rates = {0.04, 0.04, 0.04, 0.04, 0.02, 0.02, 0.015};
  EXPECT_EQ(rates_of(runs[0]), rates);
  EXPECT_EQ(runs[1].lrs, runs[0].lrs);
  EXPECT_EQ(runs[0].state.plateau, (PatienceState{"acc", 0.2, 1, 2}));
}

TEST(Plateau, EvaluationsBeforeTheEndOfWarmUpDoNotCount) {
  auto config = plateau_config();
  config.scheduler.warmup_epochs = 3;
  config.scheduler.num_epochs = 6;
  const auto run = run_tiny(1, config, with_figures({0.5, 0.4, 0.1, 0.1, 0.1}))[0];
  EXPECT_EQ(run.state.plateau, (PatienceState{"acc", 0.1, 1, 1}));
  EXPECT_EQ(run.lrs.at(24), 0.04) << "the fifth epoch";
  EXPECT_EQ(run.lrs.back(), 0.02) << "the sixth";
}

TEST(Plateau, AResumedRunHasTheSameRates) {
  for (const int64_t first : {18, 20, 24}) {  // at the end of an epoch, and within one
    const TempFolder dir;
    TrainingLog log({.file = {}, .console = false});
    auto config = plateau_config();
    config.train.ckpt_save_dir = dir.path();
    const auto hooks_of = [&] {
      TinyHooks hooks;
      hooks.add_callbacks = [&](Trainer& trainer) {
        trainer.add(std::make_shared<Checkpoints>(log));
        trainer.add(std::make_shared<Figures>(std::vector{0.1, 0.2, 0.2, 0.15, 0.1}));
      };
      return hooks;
    };
    config.train.max_steps = first;
    const auto part = run_tiny(1, config, hooks_of())[0];
    config.train.max_steps = 0;
    auto resumed = hooks_of();
    resumed.start = [&](torch::nn::Module& model, torch::optim::Optimizer& optimizer) {
      return load_checkpoint(dir.path(), model, optimizer, config.model.name());
    };
    auto lrs = part.lrs;
    const auto rest = run_tiny(1, config, resumed)[0].lrs;
    lrs.insert(lrs.end(), rest.begin(), rest.end());
    const TempFolder other;
    config.train.ckpt_save_dir = other.path();
    EXPECT_EQ(lrs, run_tiny(1, config, hooks_of())[0].lrs) << first;
  }
}

Config early_config() {
  auto config = tiny_config();
  config.system.val_while_train = true;
  config.scheduler.num_epochs = 9;
  config.train.early_stopping = PatienceConfig{"loss", 2, 0};
  return config;
}

TEST(EarlyStopping, EndsTheRunOnAllRanksAndStaysEnded) {
  const TempFolder dir;
  TrainingLog log({.file = {}, .console = false});
  auto config = early_config();
  config.train.ckpt_save_dir = dir.path();
  config.train.ckpt_save_epochs = 9;
  auto figures = std::make_shared<Figures>(std::vector{0.1, 0.3, 0.2, 0.3});
  TinyHooks hooks;
  hooks.add_callbacks = [&](Trainer& trainer) {
    const auto results = std::make_shared<Results>();
    trainer.add(results);
    trainer.add(std::make_shared<Checkpoints>(log));
    const bool first = trainer.rank() == 0;
    trainer.add(first ? figures : std::make_shared<Figures>(std::vector{0.1, 0.3, 0.2, 0.3}));
    if (first) trainer.add(std::make_shared<Events>(MetricsLabels{}, results, false));
  };
  const auto runs = run_tiny(2, config, hooks);
  for (const auto& run : runs) {
    EXPECT_EQ(run.reason, StopReason::kEarlyStopping);
    EXPECT_EQ(run.state.epoch, 4);
    EXPECT_EQ(run.losses.size(), 12U);  // 3 steps an epoch on two ranks
  }
  EXPECT_EQ(figures->notes(), "Early stopping: loss has not improved in 2 evaluations, best: 0.7");
  EXPECT_EQ(read_metrics(dir / "events.jsonl").back().text("reason"), "early stopping");
  // The last epoch is saved, and a resumed run has nothing left to do unless it may wait longer.
  hooks.start = [&](torch::nn::Module& model, torch::optim::Optimizer& optimizer) {
    return load_checkpoint(dir.path(), model, optimizer, config.model.name());
  };
  hooks.add_callbacks = [](Trainer&) {};
  const auto again = run_tiny(1, config, hooks)[0];
  EXPECT_EQ(again.reason, StopReason::kEarlyStopping);
  EXPECT_TRUE(again.losses.empty());
  config.train.early_stopping->patience = 3;
  hooks.add_callbacks = with_figures({0.1}).add_callbacks;
  EXPECT_EQ(run_tiny(1, config, hooks)[0].state.epoch, 5);
}

TEST(EarlyStopping, NamesMetricsThatThereAre) {
  auto config = early_config();
  config.train.early_stopping->metric = "accc";
  const auto error = error_of([&] { run_tiny(1, config); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_STREQ(
      error.what(),
      "train.early_stopping.metric is 'accc', evaluation gives acc, top_5, and loss if the "
      "metric computes it, did you mean 'acc'?");
  EXPECT_NE(std::string(error_of([&] { check_watched("k", "los", {"acc"}); }).what())
                .find("did you mean 'loss'?"),
            std::string::npos);
  EvalResult result;
  result.metrics = {{"acc", 0.5}};
  EXPECT_EQ(watched_value("k", "acc", result), 0.5);
  EXPECT_STREQ(error_of([&] { watched_value("k", "loss", result); }).what(),
               "k is 'loss', which the metric does not compute: evaluation gives acc");
}

}  // namespace
}  // namespace lockstep
