#include "lockstep/train/batch_share.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "lockstep/error.h"
#include "lockstep/train/callbacks/checkpoints.h"
#include "lockstep/train/rank_change.h"
#include "lockstep/training_checkpoint.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"
#include "tests/train/tiny.h"

namespace lockstep {
namespace {

TEST(BatchShare, HasAsFewEqualMicroStepsAsCanBe) {
  EXPECT_EQ(share_batch(256, 8, 32), (BatchShare{32, 1}));
  EXPECT_EQ(share_batch(256, 2, 32), (BatchShare{32, 4}));
  EXPECT_EQ(share_batch(256, 16, 32), (BatchShare{16, 1})) << "more ranks take smaller batches";
  EXPECT_EQ(share_batch(40, 2, 16), (BatchShare{10, 2}));
  EXPECT_EQ(share_batch(256, 2, 48), (BatchShare{32, 4})) << "128 are not three equal batches";
  EXPECT_EQ(share_batch(6, 2, 3), (BatchShare{3, 1}));
  EXPECT_EQ(share_batch(6, 2, 2), std::nullopt) << "not in single samples";
  EXPECT_EQ(share_batch(6, 2, 1), (BatchShare{1, 3}));
  EXPECT_EQ(share_batch(256, 3, 32), std::nullopt);
  EXPECT_EQ(share_batch(254, 2, 32), std::nullopt) << "127 is a prime number";
  EXPECT_EQ(share_batch(4, 8, 32), std::nullopt);
}

TEST(BatchShare, FindsTheNearestBatches) {
  EXPECT_EQ(shared_batch_below(256, 3, 32), 255) << "five batches of 17";
  EXPECT_EQ(shared_batch_above(256, 3, 32), 261);
  EXPECT_EQ(shared_batch_below(256, 2, 32), 256);
  EXPECT_EQ(shared_batch_above(256, 2, 32), 256);
  EXPECT_EQ(shared_batch_below(4, 8, 32), 0);
  EXPECT_EQ(shared_batch_above(4, 8, 32), 8);
  EXPECT_EQ(nearest_shared_batch(256, 3, 32), 255);
  EXPECT_EQ(nearest_shared_batch(8, 5, 32), 10);
  EXPECT_EQ(nearest_shared_batch(12, 8, 32), 8) << "16 is as near";
  EXPECT_EQ(nearest_shared_batch(4, 8, 32), 8);
}

Config sharing(int64_t batch, int64_t most) {
  Config config;
  config.parallel.global_batch = batch;
  config.train.loader.batch_size = most;
  return config;
}

World world_of(int ranks, int generation = 1) {
  World world;
  world.size = ranks;
  world.generation = generation;
  return world;
}

TEST(GlobalBatch, StaysOnAnyNumberOfRanks) {
  for (const int ranks : {1, 2, 4, 8, 16}) {
    auto config = sharing(256, 32);
    EXPECT_EQ(share_global_batch(config, world_of(ranks)), "");
    EXPECT_EQ(global_batch(config.train, ranks), 256);
    EXPECT_LE(config.train.loader.batch_size, 32);
  }
  auto config = sharing(256, 32);
  share_global_batch(config, world_of(2));
  EXPECT_EQ(batch_line(config, 2),
            "Global batch: 256 = 32 x 2 ranks x 4 accumulated (parallel.global_batch)");
  config = sharing(256, 32);
  config.parallel.virtual_ranks = 4;
  share_global_batch(config, world_of(2));
  EXPECT_EQ(batch_line(config, 4),
            "Global batch: 256 = 32 x 4 virtual ranks x 2 accumulated (parallel.global_batch)");
  config = sharing(0, 32);
  EXPECT_EQ(share_global_batch(config, world_of(3)), "");
  EXPECT_EQ(config.train.loader.batch_size, 32);
  EXPECT_EQ(batch_line(config, 3), "");
}

TEST(GlobalBatch, ThatCannotBeSharedNamesTheNearest) {
  auto config = sharing(256, 32);
  const auto refusal = [&](int ranks) {
    return std::string(error_of([&] { share_global_batch(config, world_of(ranks)); }).what());
  };
  EXPECT_EQ(refusal(3),
            "parallel.global_batch: 3 ranks cannot share 256 samples equally, in equal batches of "
            "at most 32 (train.loader.batch_size); they can share 255 or 261, and 2 or 4 ranks can "
            "share 256");
  config = sharing(4, 32);
  EXPECT_EQ(refusal(8),
            "parallel.global_batch: 8 ranks cannot share 4 samples equally, in equal batches of at "
            "most 32 (train.loader.batch_size); they can share 8, and 4 ranks can share 4");
}

TEST(GlobalBatch, OfALaterGenerationIsTheNearestThatItsRanksCanShare) {
  auto config = sharing(256, 32);
  EXPECT_EQ(share_global_batch(config, world_of(3, 2)),
            "parallel.global_batch: 3 ranks cannot share 256 samples equally. Hosts joined or "
            "left: until they can again, the global batch is 255");
  EXPECT_EQ(global_batch(config.train, 3), 255);
  config = sharing(8, 32);
  EXPECT_NE(share_global_batch(config, world_of(5, 2)), "");
  EXPECT_EQ(global_batch(config.train, 5), 10);
  config = sharing(4, 32);
  EXPECT_NE(share_global_batch(config, world_of(8, 2)), "");
  EXPECT_EQ(global_batch(config.train, 8), 8);
  config = sharing(256, 32);
  EXPECT_EQ(share_global_batch(config, world_of(2, 3)), "");
}

/// Without batch norm, which sees one micro-batch at a time.
Config shared_run(int ranks) {
  auto config = tiny_config();
  config.scheduler.scheduler = "constant";
  config.train.loader.batch_size = 2;
  config.parallel.global_batch = 8;
  share_global_batch(config, world_of(ranks));
  return config;
}

void expect_near(const TinyRun& run, const TinyRun& other) {
  EXPECT_EQ(run.state.step, other.state.step);
  EXPECT_EQ(run.state.samples, other.state.samples);
  for (size_t i = 0; i < kTinyParameters; ++i) {
    EXPECT_TRUE(run.weights[i].allclose(other.weights[i], 1e-4, 1e-6)) << i;
  }
}

TEST(GlobalBatch, TrainsTheSameNetworkOnAnyNumberOfRanks) {
  const TinyHooks hooks{.with_norm = false};
  const auto four = run_tiny(4, shared_run(4), hooks)[0];
  EXPECT_EQ(four.state.step, 12);
  for (const int ranks : {1, 2}) expect_near(run_tiny(ranks, shared_run(ranks), hooks)[0], four);
}

// As an elastic job does: within an epoch, with a checkpoint.
TEST(GlobalBatch, StaysWhenTheRanksChangeWithinARun) {
  const TempFolder dir;
  const auto whole = run_tiny(4, shared_run(4), {.with_norm = false})[0];
  auto first = shared_run(4);
  first.train.ckpt_save_dir = dir.path();
  first.train.max_steps = 2;
  TrainingLog log({.file = {}, .console = false});
  TinyHooks hooks{.with_norm = false};
  hooks.add_callbacks = [&](Trainer& trainer) { trainer.add(std::make_shared<Checkpoints>(log)); };
  run_tiny(4, first, hooks);
  TinyHooks rest{.with_norm = false};
  rest.start = [&](torch::nn::Module& weights, torch::optim::Optimizer& optimizer) {
    return load_checkpoint(dir.path(), weights, optimizer, first.model.name());
  };
  expect_near(run_tiny(2, shared_run(2), rest)[0], whole);
}

/// Of 16 samples a step, in batches of up to 4. 42 samples have two whole steps.
Config uneven_run(int ranks, int virtual_ranks = 0) {
  auto config = tiny_config();
  config.scheduler.scheduler = "constant";
  config.train.ema = true;
  config.parallel.global_batch = 16;
  config.parallel.virtual_ranks = virtual_ranks;
  share_global_batch(config, world_of(ranks));
  return config;
}

TinyHooks uneven_hooks() {
  TinyHooks hooks{.with_norm = false};
  hooks.data = [](int) { return std::make_shared<const TinyData>(42); };
  return hooks;
}

std::set<int64_t> samples_of_epoch(const std::vector<TinyRun>& ranks, int64_t epoch) {
  std::set<int64_t> samples;
  for (const auto& run : ranks) {
    samples.insert(run.taken.at(epoch).begin(), run.taken.at(epoch).end());
  }
  return samples;
}

TEST(GlobalBatch, HasTheSameStepsSamplesAndAverageInOtherBatches) {
  EXPECT_EQ(uneven_run(2).train.loader.batch_size, 4);
  EXPECT_EQ(uneven_run(8).train.loader.batch_size, 2);
  const auto two = run_tiny(2, uneven_run(2), uneven_hooks());
  EXPECT_EQ(two[0].state.step, 8);
  EXPECT_EQ(two[0].average.at("ema.updates").item<int64_t>(), 8);
  EXPECT_EQ(samples_of_epoch(two, 0).size(), 32U);
  for (const auto& [ranks, virtual_ranks] :
       std::vector<std::pair<int, int>>{{4, 0}, {8, 0}, {1, 0}, {2, 4}, {2, 8}}) {
    SCOPED_TRACE(fmt::format("{} ranks, {} virtual", ranks, virtual_ranks));
    const auto runs = run_tiny(ranks, uneven_run(ranks, virtual_ranks), uneven_hooks());
    expect_near(runs[0], two[0]);
    for (int64_t epoch = 0; epoch < 4; ++epoch) {
      EXPECT_EQ(samples_of_epoch(runs, epoch), samples_of_epoch(two, epoch));
    }
    for (const auto& [name, tensor] : two[0].average) {
      EXPECT_TRUE(runs[0].average.at(name).allclose(tensor, 1e-4, 1e-6)) << name;
    }
  }
}

TEST(GlobalBatch, TakesTheRestOfAnEpochInWholeSteps) {
  auto hooks = uneven_hooks();
  hooks.start = [](torch::nn::Module&, torch::optim::Optimizer&) {
    TrainingState state;  // of another run: 2 of 42 samples are used
    state.epoch = 3;
    state.step = state.schedule_step = state.batch_in_epoch = 1;
    state.samples = state.epoch_samples = 2;
    return state;
  };
  for (const int ranks : {1, 2, 8}) {
    const auto runs = run_tiny(ranks, uneven_run(ranks), hooks);
    EXPECT_EQ(runs[0].state.step, 1 + 2) << ranks;
    EXPECT_EQ(samples_of_epoch(runs, 3).size(), 32U) << ranks;
  }
}

// The first of eight steps is dropped, and the last four are those of other ranks.
TEST(GlobalBatch, KeepsTheScheduleAfterADroppedStep) {
  const auto of = [](int ranks) {
    auto config = uneven_run(ranks);
    config.scheduler.scheduler = "polynomial_decay";
    config.loss_scaler = LossScalerConfig{.dynamic = true, .loss_scale = 512};
    return config;
  };
  const TempFolder dir;
  TrainingLog log({.file = {}, .console = false});
  auto hooks = uneven_hooks();
  hooks.model = [](int, TinyModel& model) {
    model.overflows = [](int64_t call) { return call == 1; };
  };
  const auto whole = run_tiny(4, of(4), hooks)[0];
  ASSERT_EQ(whole.lrs.size(), 8U);
  EXPECT_EQ(whole.state.dropped_batches, 1);
  hooks.add_callbacks = [&](Trainer& trainer) { trainer.add(std::make_shared<Checkpoints>(log)); };
  auto first = of(4);
  first.train.ckpt_save_dir = dir.path();
  first.train.max_steps = 3;
  run_tiny(4, first, hooks);
  auto rest = uneven_hooks();
  rest.start = [&](torch::nn::Module& weights, torch::optim::Optimizer& optimizer) {
    return load_checkpoint(dir.path(), weights, optimizer, first.model.name());
  };
  const auto run = run_tiny(8, of(8), rest)[0];
  EXPECT_EQ(run.state.dropped_batches, 1);
  EXPECT_EQ(run.lrs, std::vector<double>(whole.lrs.begin() + 4, whole.lrs.end()));
  expect_near(run, whole);
}

}  // namespace
}  // namespace lockstep
