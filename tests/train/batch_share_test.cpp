#include "lockstep/train/batch_share.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "lockstep/train/callbacks/checkpoints.h"
#include "lockstep/train/rank_change.h"
#include "lockstep/train/setup.h"
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
  EXPECT_EQ(share_batch(256, 3, 32), std::nullopt);
  EXPECT_EQ(share_batch(254, 2, 32), std::nullopt) << "127 are not four equal batches";
  EXPECT_EQ(share_batch(4, 8, 32), std::nullopt);
}

TEST(BatchShare, FindsTheNearestBatches) {
  EXPECT_EQ(shared_batch_below(256, 3, 32), 252);
  EXPECT_EQ(shared_batch_above(256, 3, 32), 261);
  EXPECT_EQ(shared_batch_below(256, 2, 32), 256);
  EXPECT_EQ(shared_batch_above(256, 2, 32), 256);
  EXPECT_EQ(shared_batch_below(4, 8, 32), 0);
  EXPECT_EQ(shared_batch_above(4, 8, 32), 8);
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
            "at most 32 (train.loader.batch_size); they can share 252 or 261, and 2 or 4 ranks can "
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
            "left: until they can again, the global batch is 252");
  EXPECT_EQ(global_batch(config.train, 3), 252);
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

}  // namespace
}  // namespace lockstep
