#include "lockstep/train/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/error.h"
#include "lockstep/train/callbacks/results.h"
#include "lockstep/train/task_parts.h"
#include "tests/support/error_of.h"
#include "tests/support/read_metrics.h"
#include "tests/support/temp_folder.h"
#include "tests/train/tiny.h"

namespace lockstep {
namespace {

TEST(AccumulationSlot, LastOfAnEpochTakesWhatIsLeft) {
  EXPECT_EQ(accumulation_slot(0, 5, 1).size, 1);
  EXPECT_TRUE(accumulation_slot(0, 5, 1).last);
  EXPECT_EQ(accumulation_slot(2, 5, 2).size, 2);
  EXPECT_FALSE(accumulation_slot(2, 5, 2).last);
  EXPECT_TRUE(accumulation_slot(3, 5, 2).last);
  EXPECT_EQ(accumulation_slot(4, 5, 2).size, 1);
  EXPECT_TRUE(accumulation_slot(4, 5, 2).last);
  EXPECT_EQ(accumulation_slot(4, 5, 8).size, 5);
}

TEST(Trainer, FollowsTheScheduleAndCounts) {
  const auto run = run_tiny(1, tiny_config())[0];
  EXPECT_EQ(run.reason, StopReason::kEpochsDone);
  EXPECT_EQ(run.losses.size(), 24u);
  EXPECT_DOUBLE_EQ(run.lrs[12], 0.05 * std::pow(0.5, 0.9));
  EXPECT_EQ(run.state.step, 24);
  EXPECT_EQ(run.state.epoch, 4);
  EXPECT_EQ(run.state.samples, 96);
}

TEST(Trainer, Learns) {
  auto config = tiny_config();
  config.scheduler.num_epochs = 40;
  const auto losses = run_tiny(2, config)[0].losses;
  const auto sum = [](auto begin) { return std::accumulate(begin, begin + 6, 0.0); };
  EXPECT_LT(sum(losses.end() - 6), sum(losses.begin()) * 0.7);
}

// One rank with batches of 4 and two with 2 each see the same global batches.
TEST(Trainer, TwoRanksComputeWhatOneWould) {
  auto config = tiny_config();
  const TinyHooks hooks{.with_norm = false};
  const auto one = run_tiny(1, config, hooks);
  config.train.loader.batch_size = 2;
  const auto two = run_tiny(2, config, hooks);
  ASSERT_EQ(one[0].losses.size(), two[0].losses.size());
  for (size_t i = 0; i < one[0].losses.size(); ++i) {
    EXPECT_NEAR(one[0].losses[i], two[0].losses[i], 1e-5) << "step " << i;
  }
}

// The same with batch norm over the statistics of both ranks.
TEST(Trainer, SynchronisedBatchNormIsThatOfOneRank) {
  auto config = tiny_config();
  const auto one = run_tiny(1, config);
  config.train.loader.batch_size = 2;
  const auto apart = run_tiny(2, config);
  config.parallel.sync_bn = true;
  const auto two = run_tiny(2, config);
  const auto difference = [&](const std::vector<TinyRun>& runs, size_t i) {
    return std::abs(one[0].losses[i] - runs[0].losses[i]);
  };
  for (size_t i = 0; i < one[0].losses.size(); ++i) EXPECT_LT(difference(two, i), 1e-4) << i;
  EXPECT_GT(difference(apart, 0), 1e-3);
  EXPECT_TRUE(same_weights(two[0], two[1]));
}

TEST(Trainer, RefusesToSynchroniseBatchNormThatIsNotThere) {
  auto config = tiny_config();
  config.parallel.sync_bn = true;
  TinyHooks hooks{.with_norm = false};
  hooks.model = [](int, TinyModel& model) { model.unregister_module("norm"); };
  const auto error = error_of([&] { run_tiny(2, config, hooks); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_STREQ(error.what(), "parallel.sync_bn is True, but the network has no batch norm layer");
}

TEST(Trainer, KnowsTheHooksAndGraphsOfItsConfiguration) {
  const auto plain = run_tiny(2, tiny_config());
  for (const auto& hook : comm_hook_names()) {
    auto config = tiny_config();
    config.parallel.comm_hook = hook;
    const auto runs = run_tiny(2, config);
    EXPECT_TRUE(same_weights(runs[0], runs[1], kTinyParameters)) << hook;
    if (hook == "auto") continue;                             // its choice depends on time
    const bool exact = hook == "none" || hook == "powersgd";  // at first
    EXPECT_EQ(same_weights(runs[0], plain[0]), exact) << hook;
  }
  auto unused = tiny_config(), fixed = tiny_config();
  unused.parallel.find_unused_parameters = fixed.parallel.static_graph = true;
  EXPECT_TRUE(same_weights(run_tiny(2, unused)[0], plain[0]));
  EXPECT_TRUE(same_weights(run_tiny(2, fixed)[0], plain[0]));
}

TEST(Trainer, RanksAndRunsAreEqualBitForBit) {
  const auto first = run_tiny(2, tiny_config());
  const auto second = run_tiny(2, tiny_config());
  EXPECT_TRUE(same_weights(first[0], first[1], kTinyParameters));
  EXPECT_TRUE(same_weights(first[0], second[0]));
  EXPECT_EQ(first[0].losses, second[1].losses);
}

TEST(Trainer, AccumulationIsALargerBatch) {
  auto config = tiny_config();
  config.scheduler.scheduler = "constant";
  config.train.loader.shuffle = false;
  const TinyHooks hooks{.with_norm = false};
  const auto large = run_tiny(1, config, hooks)[0];
  config.train.loader.batch_size = 2;
  config.train.gradient_accumulation_steps = 2;
  const auto small = run_tiny(1, config, hooks)[0];
  EXPECT_EQ(small.state.step, large.state.step);
  for (size_t i = 0; i < kTinyParameters; ++i) {
    EXPECT_TRUE(small.weights[i].allclose(large.weights[i], 1e-4, 1e-6)) << i;
  }
}

// Batches of 5, 5, 5, 5 and 4 samples are one of 24: the short one is weighted by its samples.
TEST(Trainer, AccumulationIsTheMeanOverSamples) {
  auto config = tiny_config();
  config.scheduler.scheduler = "constant";
  config.scheduler.lr = 1;
  config.scheduler.num_epochs = 2;
  config.optimizer.momentum = 0;
  config.train.loader = {.shuffle = false, .batch_size = 24, .drop_remainder = false};
  const TinyHooks hooks{.with_norm = false};
  const auto large = run_tiny(1, config, hooks)[0];
  config.train.loader.batch_size = 5;
  config.train.gradient_accumulation_steps = 5;
  const auto small = run_tiny(1, config, hooks)[0];
  EXPECT_EQ(small.losses.size(), 10u);
  EXPECT_EQ(small.state.step, 2);
  for (size_t i = 0; i < kTinyParameters; ++i) {
    EXPECT_TRUE(small.weights[i].allclose(large.weights[i], 1e-4, 1e-6)) << i;
  }
}

TEST(Trainer, ClippingBoundsTheStep) {
  auto config = tiny_config();
  config.optimizer.momentum = 0;
  config.train.clip_grad = true;
  config.train.clip_norm = 1e-9;
  config.train.max_steps = 1;
  const auto run = run_tiny(2, config);
  config.train.max_steps = 2;
  const auto more = run_tiny(2, config);
  EXPECT_TRUE(run[0].weights[0].allclose(more[0].weights[0], 0, 1e-8));
}

TEST(Trainer, NoFiniteLossNamesStepAndRank) {
  TinyHooks hooks;
  hooks.model = [](int rank, TinyModel& model) { model.poisoned_call = rank == 1 ? 8 : 0; };
  const auto error = error_of([&] { run_tiny(3, tiny_config(), hooks); });
  EXPECT_EQ(error.code(), ErrorCode::kDiverged);
  EXPECT_EQ(std::string(error.what()).find("epoch: 4 step: 2. Invalid loss"), 0u) << error.what();
  EXPECT_NE(std::string(error.what()).find("on rank 1."), std::string::npos) << error.what();
}

TEST(Trainer, LossesOfVirtualRanksAreThoseOfAsManyRanks) {
  auto config = tiny_config();
  const auto ranks = run_tiny(4, config, {.with_norm = false})[0];
  config.parallel.virtual_ranks = 4;
  const auto virtual_ranks = run_tiny(1, config, {.with_norm = false})[0];
  EXPECT_EQ(virtual_ranks.losses, ranks.losses);
  EXPECT_TRUE(same_weights(virtual_ranks, ranks, kTinyParameters));
  EXPECT_EQ(virtual_ranks.state.samples, ranks.state.samples);
}

/// Logs the batch's mean label, and in the first batches another number, "sometimes".
class LoggingTask final : public Task {
 public:
  explicit LoggingTask(std::unique_ptr<Task> task) : task_(std::move(task)) {}
  std::vector<std::string> log_names() const override { return {"mean_label"}; }
  at::Tensor loss(const Tensors& outputs, const Tensors& targets) override {
    log_value("mean_label", targets.front().to(at::kFloat).mean());
    if (batches_++ < 4) log_value("sometimes", at::full({}, 7));
    EXPECT_EQ(error_of([&] { log_value("mean_labels", at::full({}, 7)); }).code(),
              ErrorCode::kInvalidArgument);
    return task_->loss(outputs, targets);
  }
  std::vector<std::string> metric_names() const override { return task_->metric_names(); }
  size_t num_sums() const override { return task_->num_sums(); }
  std::vector<double> sums(const Tensors& outputs, const Batch& batch) override {
    return task_->sums(outputs, batch);
  }
  EvalResult result(std::span<const double> sums) override { return task_->result(sums); }

 private:
  std::unique_ptr<Task> task_;
  int batches_ = 0;
};

// Means over ranks and virtual ranks, and the norm from clipping.
TEST(Trainer, WhatALossLogsIsInTheMetrics) {
  std::vector<std::vector<double>> means;
  for (const int ranks : {1, 2, 3}) {
    const TempFolder dir;
    auto config = tiny_config();
    config.parallel.virtual_ranks = 4;
    config.train.loader.batch_size = 2;
    config.train.clip_grad = true;
    config.train.clip_norm = 1e-3;
    config.train.ckpt_save_dir = dir.path();
    config.parallel.measure_wait = true;
    TinyHooks hooks;
    hooks.log_names = {"sometimes"};
    hooks.task = [](const Config& own) { return std::make_unique<LoggingTask>(make_task(own)); };
    hooks.add_callbacks = [](Trainer& trainer) { trainer.add(std::make_shared<Results>()); };
    run_tiny(ranks, config, hooks);
    const auto records = read_metrics(dir / "metrics.jsonl");
    ASSERT_EQ(records.size(), 12u);
    auto& own = means.emplace_back();
    for (const auto& record : records) {
      own.push_back(record.value("mean_label").value());
      EXPECT_GT(record.value("grad_norm").value(), 1e-3);
      for (const auto& [name, value] : record.values) {
        const bool logged = name == "mean_label" || name == "sometimes";
        EXPECT_EQ(std::count(step_fields().begin(), step_fields().end(), name), logged ? 0 : 1)
            << name;
      }
    }
    EXPECT_EQ(records[0].value("sometimes"), 7);
    EXPECT_TRUE(std::isnan(records[5].value("sometimes").value()));
  }
  EXPECT_EQ(means[0], means[1]);
}

TEST(WholeStep, ARecordOfMetricsIsThatOfTheOptimizerStep) {
  struct Steps final : Callback {
    void on_step(Trainer&, const StepReport& report) override { reports.push_back(report); }
    std::vector<StepReport> reports;
  };
  const TempFolder dir;
  auto config = tiny_config();
  config.scheduler.num_epochs = 1;
  config.train.gradient_accumulation_steps = 2;
  config.train.ckpt_save_dir = dir.path();
  const auto steps = std::make_shared<Steps>();
  TinyHooks hooks;
  hooks.log_names = {"sometimes"};
  hooks.task = [](const Config& own) { return std::make_unique<LoggingTask>(make_task(own)); };
  hooks.add_callbacks = [&](Trainer& trainer) {
    trainer.add(std::make_shared<Results>());
    trainer.add(steps);
  };
  run_tiny(1, config, hooks);
  const auto records = read_metrics(dir / "metrics.jsonl");
  const auto& parts = steps->reports;
  ASSERT_GE(parts.size(), 4u);
  ASSERT_EQ(records.size(), (parts.size() + 1) / 2);
  for (size_t i = 0; i < parts.size() / 2; ++i) {
    const auto &first = parts[2 * i], &second = parts[2 * i + 1];
    EXPECT_NE(first.loss, second.loss);
    EXPECT_EQ(first.samples, config.train.loader.batch_size);
    EXPECT_EQ(first.shown, 1u) << "the task's own names stand in metrics.jsonl alone";
    EXPECT_EQ(first.logged.back().first, "sometimes");
    const auto share = [&](const StepReport& part) {
      return static_cast<double>(part.samples) /
             static_cast<double>(first.samples + second.samples);
    };
    EXPECT_NEAR(records[i].value("loss").value(),
                first.loss * share(first) + second.loss * share(second), 1e-12);
    EXPECT_NEAR(records[i].value("step_ms").value(), (first.step_s + second.step_s) * 1000, 1e-4);
  }
}

TEST(WholeStep, MicroStepsCountByTheirSamples) {
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  WholeStep whole;
  whole.add({.samples = 6,
             .loss = 1,
             .step_s = 2,
             .waits = {1, 0.3, 0.25, 0},
             .logged = {{"a", 4}, {"b", nothing}, {"c", 1}, {"d", nothing}}});
  whole.add({.samples = 2,
             .loss = 5,
             .step_s = 1,
             .waits = {2, 0.4, 0.5, 0},
             .logged = {{"a", 8}, {"b", 3}, {"c", nothing}, {"d", nothing}}});
  whole.add({.samples = 8,
             .updated = true,
             .loss = 4,
             .step_s = 1,
             .waits = {1, 0.2, 0, 0.1},
             .logged = {{"a", 7}, {"b", 4}, {"c", 2}, {"d", nothing}}});
  const auto step = whole.take();
  EXPECT_TRUE(step.updated);
  EXPECT_EQ(step.samples, 16);
  EXPECT_EQ(step.micro_steps, 3);
  EXPECT_DOUBLE_EQ(step.loss, 3);
  EXPECT_DOUBLE_EQ(step.logged[0].second, 6);
  for (size_t i = 1; i < 4; ++i) EXPECT_TRUE(std::isnan(step.logged[i].second)) << i;
  EXPECT_DOUBLE_EQ(step.step_s, 4);
  EXPECT_DOUBLE_EQ(step.waits.waited_s, 0.9);
  EXPECT_DOUBLE_EQ(step.waits.moved_s, 0.75);
  EXPECT_EQ(step.waits.slowest, 2);
  whole.add({.samples = 3, .loss = 7, .waits = {0, 0.1, 0, 0}});
  EXPECT_EQ(whole.take().loss, 7);
}

TEST(WholeStep, MicroStepsCountByTheirItems) {
  WholeStep whole;
  whole.add({.samples = 4, .items = 0, .loss = 0, .logged = {{"a", 0}}});
  whole.add({.samples = 4, .items = 6, .loss = 1, .logged = {{"a", 4}}});
  whole.add({.samples = 4, .items = 0, .loss = 0, .logged = {{"a", 0}}});
  whole.add({.samples = 1, .items = 2, .loss = 5, .logged = {{"a", 8}}});
  const auto step = whole.take();
  EXPECT_EQ(step.samples, 13);
  EXPECT_EQ(step.items, 8);
  EXPECT_DOUBLE_EQ(step.loss, 2);
  EXPECT_DOUBLE_EQ(step.logged[0].second, 5);
  whole.add({.samples = 4, .items = 0, .loss = 0});
  whole.add({.samples = 4, .items = 0, .loss = 0});
  EXPECT_EQ(whole.take().loss, 0) << "of no items";
}

TEST(Trainer, GroupsWithoutRatesOfTheirOwnFollowTheSchedule) {
  struct Rates final : Callback {
    void on_step(Trainer& trainer, const StepReport& report) override {
      for (auto& group : trainer.optimizer().param_groups()) {
        EXPECT_EQ(group.options().get_lr(), report.lr);  // of make_optimizer(): the schedule's
      }
    }
  };
  TinyHooks hooks;
  hooks.add_callbacks = [](Trainer& trainer) { trainer.add(std::make_shared<Rates>()); };
  run_tiny(1, tiny_config(), hooks);
}

}  // namespace
}  // namespace lockstep
