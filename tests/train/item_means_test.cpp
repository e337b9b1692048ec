// Losses that are means over other items than samples: see ItemCount.

#include <ATen/ops/cross_entropy_loss.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "lockstep/base/file.h"
#include "lockstep/error.h"
#include "lockstep/train.h"
#include "lockstep/train/callbacks/checkpoints.h"
#include "lockstep/train/callbacks/results.h"
#include "lockstep/train/callbacks/step_log.h"
#include "lockstep/training_checkpoint.h"
#include "tests/support/error_of.h"
#include "tests/support/read_metrics.h"
#include "tests/support/temp_folder.h"
#include "tests/train/tiny.h"

namespace lockstep {
namespace {

/// 0 to 3 items a sample, whose number depends on its class; so ranks have unequally many.
at::Tensor items_of(const at::Tensor& labels) {
  return labels.remainder(5).sub(1).clamp(0, 3);
}

/// The mean over the items of a batch; 0 of none.
at::Tensor mean_over(const at::Tensor& items, const Tensors& outputs, const Tensors& targets) {
  const auto of_samples = at::cross_entropy_loss(outputs[0], targets[0], {}, at::Reduction::None);
  return (of_samples * items).sum() / items.sum().clamp_min(1);
}

at::Tensor mean_over_items(const Tensors& outputs, const Tensors& targets) {
  const auto mean = mean_over(items_of(targets[0]), outputs, targets);
  log_value("twice", mean * 2);
  return mean;
}

int64_t num_items_of(const Batch& batch) {
  return items_of(batch.targets[0]).sum().item<int64_t>();
}

/// `counts`: the batches are weighted by their items.
Config item_config(bool counts) {
  Config config = tiny_config();
  config.loss = OwnLoss{"items", LoggedLoss(mean_over_items, {"twice"},
                                            counts ? ItemCount(num_items_of) : ItemCount())};
  config.scheduler.scheduler = "constant";
  config.scheduler.lr = 0.1;
  config.scheduler.num_epochs = 3;
  config.optimizer.momentum = 0;
  return config;
}

/// Without batch norm, whose statistics are those of a batch.
TinyHooks item_hooks() {
  TinyHooks hooks;
  hooks.with_norm = false;
  hooks.log_names = {"twice"};
  return hooks;
}

/// The largest difference of a weight.
double distance(const TinyRun& a, const TinyRun& b) {
  double most = 0;
  for (size_t i = 0; i < kTinyParameters; ++i) {
    most = std::max(most, (a.weights.at(i) - b.weights.at(i)).abs().max().item<double>());
  }
  return most;
}

/// One batch of 8 samples on one rank.
TinyRun run_of_one_batch() {
  Config config = item_config(false);
  config.train.loader.batch_size = 8;
  return run_tiny(1, config, item_hooks())[0];
}

TEST(ItemMeans, OfTwoRanksAreThoseOfOneBatch) {
  const TinyRun whole = run_of_one_batch();
  ASSERT_EQ(whole.losses.size(), 9U);
  for (const auto& run : run_tiny(2, item_config(true), item_hooks())) {
    EXPECT_LT(distance(run, whole), 1e-5);
    for (size_t i = 0; i < 9; ++i) EXPECT_NEAR(run.losses.at(i), whole.losses[i], 1e-5) << i;
  }
  const TinyRun mean_of_means = run_tiny(2, item_config(false), item_hooks())[0];
  EXPECT_GT(distance(mean_of_means, whole), 1e-3) << "the data show the difference";
}

// Batches of 2 and of 1 of them without an item are among these.
TEST(ItemMeans, OfAccumulatedBatchesAreThoseOfOneBatch) {
  const TinyRun whole = run_of_one_batch();
  for (const int ranks : {1, 2}) {
    for (const int64_t size : {1, 2, 4}) {
      if (ranks * size > 4) continue;
      Config config = item_config(true);
      config.train.loader.batch_size = size;
      config.train.gradient_accumulation_steps = 8 / (ranks * size);
      const TinyRun parts = run_tiny(ranks, config, item_hooks())[0];
      EXPECT_EQ(parts.state.step, whole.state.step);
      EXPECT_LT(distance(parts, whole), 1e-5) << ranks << " ranks, batches of " << size;
      config.loss = item_config(false).loss;
      const TinyRun mean_of_means = run_tiny(ranks, config, item_hooks())[0];
      EXPECT_GT(distance(mean_of_means, whole), 1e-3);
    }
  }
}

TEST(ItemMeans, HaveTheSameBitsOnAnyNumberOfRanks) {
  Config config = item_config(true);
  config.parallel.virtual_ranks = 4;
  config.train.loader.batch_size = 1;
  config.train.gradient_accumulation_steps = 2;
  const TinyRun one = run_tiny(1, config, item_hooks())[0];
  EXPECT_LT(distance(one, run_of_one_batch()), 1e-5);
  for (const int ranks : {2, 3, 4}) {
    for (const auto& run : run_tiny(ranks, config, item_hooks())) {
      EXPECT_TRUE(same_weights(run, one)) << ranks << " ranks";
      EXPECT_EQ(run.losses, one.losses) << ranks << " ranks";
    }
  }
}

// Of 12 micro-steps of an epoch, 7 are an optimizer step, and the last 5 are one, too.
TEST(ItemMeans, OfEquallyManyItemsAreThoseOfSamples) {
  for (const int64_t accumulation : {1, 7}) {
    Config by_samples = item_config(false);
    by_samples.train.loader.batch_size = 1;
    by_samples.train.gradient_accumulation_steps = accumulation;
    Config by_items = by_samples;
    by_items.loss = OwnLoss{
        "items", LoggedLoss(mean_over_items, {"twice"}, [](const Batch&) -> int64_t { return 3; })};
    EXPECT_TRUE(same_weights(run_tiny(2, by_items, item_hooks())[0],
                             run_tiny(2, by_samples, item_hooks())[0]))
        << accumulation;
  }
}

/// 4000 items of a sample of class 3 or 6, and none of others. In TinyData's order these are the
/// samples 8, 9, 18 and 19.
at::Tensor late_items_of(const at::Tensor& labels) {
  return labels.eq(3).logical_or(labels.eq(6)).to(at::kLong).mul(4000);
}

/// `counts`: as item_config().
Config late_config(bool counts) {
  Config config = item_config(counts);
  const auto loss = [](const Tensors& outputs, const Tensors& targets) {
    return mean_over(late_items_of(targets[0]), outputs, targets);
  };
  const auto count = [](const Batch& batch) {
    return late_items_of(batch.targets[0]).sum().item<int64_t>();
  };
  config.loss = OwnLoss{"late", LoggedLoss(loss, {}, counts ? ItemCount(count) : ItemCount())};
  config.train.loader.shuffle = false;
  return config;
}

TinyHooks late_hooks() {
  TinyHooks hooks;
  hooks.with_norm = false;
  return hooks;
}

// The summed gradients would be 16,000 times as large in units of the first batch, which has none.
TEST(ItemMeans, FitIntoHalfPrecisionBehindABatchWithoutItems) {
  Config config = late_config(true);
  config.train.gradient_accumulation_steps = 3;
  const TinyRun exact = run_tiny(2, config, late_hooks())[0];
  config.parallel.comm_hook = "fp16";
  config.loss_scaler = LossScalerConfig{.loss_scale = 128};
  config.system.drop_overflow_update = true;
  const TinyRun half = run_tiny(2, config, late_hooks())[0];
  EXPECT_EQ(half.state.loss_scale->overflows, 0);
  EXPECT_EQ(half.state.step, 3);
  EXPECT_LT(distance(half, exact), 1e-3);
}

// Optimizer steps of 4 micro-steps, and of the 2 that are left. In both some have no items.
TEST(ItemMeans, HaveTheSameBitsOnAnyNumberOfRanksBehindABatchWithoutItems) {
  Config whole = late_config(false);
  whole.train.loader.batch_size = 16;
  whole.train.loader.drop_remainder = false;
  const TinyRun exact = run_tiny(1, whole, late_hooks())[0];
  Config config = late_config(true);
  config.parallel.virtual_ranks = 4;
  config.train.loader.batch_size = 1;
  config.train.gradient_accumulation_steps = 4;
  const TinyRun one = run_tiny(1, config, late_hooks())[0];
  EXPECT_EQ(one.state.step, exact.state.step);
  EXPECT_LT(distance(one, exact), 1e-5);
  for (const int ranks : {2, 4}) {
    for (const auto& run : run_tiny(ranks, config, late_hooks())) {
      EXPECT_TRUE(same_weights(run, one)) << ranks << " ranks";
      EXPECT_EQ(run.losses, one.losses) << ranks << " ranks";
    }
  }
}

/// The values of "twice" of a run, by micro-step.
class LoggedTwice final : public Callback {
 public:
  void on_step(Trainer&, const StepReport& report) override {
    ASSERT_EQ(report.logged.size(), 1U);
    EXPECT_NEAR(report.logged[0].second, 2 * report.loss, 1e-5);
    ++steps;
  }
  int steps = 0;
};

TEST(ItemMeans, WeighLoggedValuesAsTheLoss) {
  TinyHooks hooks = item_hooks();
  const auto logged = std::make_shared<LoggedTwice>();
  hooks.add_callbacks = [&](Trainer& trainer) {
    if (trainer.rank() == 0) trainer.add(logged);
  };
  run_tiny(2, item_config(true), hooks);
  EXPECT_EQ(logged->steps, 9);
}

TEST(ItemMeans, NameTheLossWhoseCountFails) {
  Config config = item_config(true);
  std::get<OwnLoss>(config.loss).make.num_items = [](const Batch&) -> int64_t {
    throw std::runtime_error("cannot count\nframe #0");
  };
  const Error error = error_of([&] { run_tiny(1, config, item_hooks()); });
  EXPECT_EQ(error.code(), ErrorCode::kInternal);
  EXPECT_STREQ(error.what(), "loss: 'items' failed in num_items: cannot count");
}

/// What a run leaves of its losses.
struct LossesOfItems {
  std::vector<double> steps, twice, epochs;
};

LossesOfItems losses_of_items(int ranks, int64_t accumulation, int64_t size) {
  const TempFolder dir;
  Config config = item_config(true);
  config.train.loader.batch_size = size;
  config.train.gradient_accumulation_steps = accumulation;
  config.train.ckpt_save_dir = dir.path();
  TinyHooks hooks = item_hooks();
  hooks.add_callbacks = [](Trainer& trainer) { trainer.add(std::make_shared<Results>()); };
  LossesOfItems losses;
  losses.epochs = run_tiny(ranks, config, hooks)[0].epoch_losses;
  for (const auto& record : read_metrics(dir / "metrics.jsonl")) {
    losses.steps.push_back(record.value("loss").value());
    losses.twice.push_back(record.value("twice").value());
  }
  return losses;
}

// Among batches of 1 and 2 samples are some without items.
TEST(ItemMeans, OfStepsAndEpochsAreLoggedAlikeForAnySplit) {
  const LossesOfItems whole = losses_of_items(1, 1, 8);
  ASSERT_EQ(whole.steps.size(), 9U);
  ASSERT_EQ(whole.epochs.size(), 3U);
  using Split = std::array<int, 3>;  // ranks, accumulation, batch
  for (const auto& [ranks, accumulation, size] :
       {Split{1, 4, 2}, Split{2, 2, 2}, Split{1, 8, 1}, Split{2, 4, 1}}) {
    const LossesOfItems parts = losses_of_items(ranks, accumulation, size);
    ASSERT_EQ(parts.steps.size(), 9U);
    for (size_t i = 0; i < 9; ++i) {
      EXPECT_NEAR(parts.steps[i], whole.steps[i], 1e-5) << ranks << " x " << accumulation;
      EXPECT_NEAR(parts.twice[i], 2 * parts.steps[i], 1e-5) << ranks << " x " << accumulation;
    }
    ASSERT_EQ(parts.epochs.size(), 3U);
    for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(parts.epochs[i], whole.epochs[i], 1e-5);
  }
}

// An epoch has 6 steps; 8 end within one.
TEST(ItemMeans, OfAnEpochGoOnWhereARunResumes) {
  const TempFolder dir;
  Config config = item_config(true);
  config.train.loader.batch_size = 4;
  const TinyRun whole = run_tiny(1, config, item_hooks())[0];
  config.train.ckpt_save_dir = dir.path();
  config.train.max_steps = 8;
  TrainingLog log({.file = {}, .console = false});
  TinyHooks hooks = item_hooks();
  hooks.add_callbacks = [&](Trainer& trainer) { trainer.add(std::make_shared<Checkpoints>(log)); };
  EXPECT_TRUE(run_tiny(1, config, hooks)[0].state.epoch_items);
  config.train.max_steps = 0;
  hooks.start = [&](torch::nn::Module& model, torch::optim::Optimizer& optimizer) {
    return load_checkpoint(dir.path(), model, optimizer, config.model.name());
  };
  const TinyRun rest = run_tiny(1, config, hooks)[0];
  EXPECT_EQ(rest.epoch_losses,
            std::vector<double>(whole.epoch_losses.begin() + 1, whole.epoch_losses.end()));
  EXPECT_FALSE(rest.state.epoch_items) << "at the end of an epoch";
}

TEST(ItemMeans, AnEpochWithoutItemsIsOneWarning) {
  const TempFolder dir;
  Config config = item_config(true);
  std::get<OwnLoss>(config.loss).make.num_items = [](const Batch&) -> int64_t { return 0; };
  TrainingLog log({.file = dir / "log.txt", .console = false});
  TinyHooks hooks = item_hooks();
  hooks.add_callbacks = [&](Trainer& trainer) { trainer.add(std::make_shared<StepLog>(log)); };
  const TinyRun run = run_tiny(1, config, hooks)[0];
  ASSERT_EQ(run.epoch_losses.size(), 3U);
  for (const double loss : run.epoch_losses) EXPECT_TRUE(std::isnan(loss)) << "never the best";
  const std::string text = read_file(dir / "log.txt");
  const auto at = text.find(no_items_line("items", 1));
  EXPECT_NE(at, std::string::npos) << text;
  EXPECT_EQ(text.find("counted no items", at + 40), std::string::npos) << text;
}

/// The loss of a batch without items is 0 / 0, as the first batches of late_config() are.
Config undefined_config() {
  Config config = late_config(true);
  std::get<OwnLoss>(config.loss).make.function = [](const Tensors& outputs,
                                                    const Tensors& targets) {
    const auto items = late_items_of(targets[0]);
    return mean_over(items, outputs, targets) * (items.sum() / items.sum());
  };
  return config;
}

TEST(ItemMeans, ALossOfNoItemsThatIsNoNumberIsNamed) {
  const Error error = error_of([&] { run_tiny(2, undefined_config(), late_hooks()); });
  EXPECT_EQ(error.code(), ErrorCode::kDiverged);
  EXPECT_STREQ(error.what(),
               "epoch: 1 step: 1. Invalid loss, terminating training: it is not a finite number on "
               "rank 0, 1, whose batch counts 0 items. Its loss must be finite, too: divide a sum "
               "by at least 1");
}

// Samples 8 and 9 have items, and the batch is 8 to 15. 8 is of rank 0, and 9 of rank 1.
TEST(ItemMeans, ALossOfItemsThatIsNoNumberHasDiverged) {
  TinyHooks hooks = late_hooks();
  hooks.model = [](int, TinyModel& model) { model.poisoned_call = 2; };
  Config config = late_config(true);
  config.train.loader.batch_size = 4;
  const Error error = error_of([&] { run_tiny(2, config, hooks); });
  EXPECT_EQ(std::string(error.what()).find("epoch: 1 step: 2. Invalid loss"), 0U) << error.what();
  EXPECT_NE(std::string(error.what()).find("Try a smaller scheduler.lr"), std::string::npos)
      << error.what();
}

/// y = 3 x - 1 at 32 points.
class SomeLine final : public BatchMaker {
 public:
  int64_t size() const override { return 32; }
  Batch make(const BatchRows& rows) const override {
    const auto x = indices_of(rows).to(at::kFloat).unsqueeze(1) / 32;
    return {x, {x * 3 - 1}, rows.num_counted};
  }
};

struct LinearLayer final : Model {
  torch::nn::Linear layer = register_module("layer", torch::nn::Linear(1, 1));
  at::Tensor forward(at::Tensor input) override { return layer(input); }
};

TEST(ItemMeans, OfARecipeAreCounted) {
  const TempFolder folder;
  int64_t rows = 0;
  Recipe recipe;
  recipe.name = "line";
  recipe.network = [](int64_t) { return std::make_shared<LinearLayer>(); };
  recipe.data = [](const DatasetUse&) { return std::make_unique<const SomeLine>(); };
  recipe.loss = [](const Tensors& outputs, const Tensors& targets) {
    return (outputs[0] - targets[0]).square().mean();
  };
  recipe.num_items = [&](const Batch& batch) {
    EXPECT_TRUE(batch.images.is_cpu());
    rows += batch.targets[0].numel();
    return batch.targets[0].numel();
  };
  recipe.settings = {"train.ckpt_save_dir=" + (folder / "out").string(), "scheduler.num_epochs=2",
                     "scheduler.warmup_epochs=0", "train.loader.batch_size=8"};
  EXPECT_EQ(train(recipe, World::join()), 0);
  EXPECT_EQ(rows, 64);

  const auto refusal = [&] {
    const Error error = error_of([&] { train(recipe, World::join()); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return std::string(error.what());
  };
  recipe.num_items = [](const Batch&) { return -3; };
  EXPECT_NE(refusal().find("loss: 'line' counts -3 items in a batch, not 0 or more"),
            std::string::npos);
  recipe.num_items = [](const Batch&) -> int64_t {
    throw Error(ErrorCode::kInvalidArgument, "no mask");
  };
  EXPECT_NE(refusal().find("loss: 'line' failed in num_items: no mask"), std::string::npos);
  recipe.loss = {};
  EXPECT_EQ(refusal(), "train(recipe): num_items belongs to a loss of the recipe");
}

}  // namespace
}  // namespace lockstep
