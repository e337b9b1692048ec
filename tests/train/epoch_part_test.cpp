// A run that resumes within an epoch, on other ranks, virtual ranks or batches.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lockstep/error.h"
#include "lockstep/train/callbacks/checkpoints.h"
#include "lockstep/train/schedule/schedule.h"
#include "lockstep/train/trainer.h"
#include "lockstep/training_checkpoint.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"
#include "tests/train/tiny.h"

namespace lockstep {
namespace {

/// A run that resumes after 2 batches of 4 in its second epoch; the first had 20 samples.
TinyHooks from_within_an_epoch(int64_t epoch_samples = 8) {
  TinyHooks hooks;
  hooks.start = [=](torch::nn::Module&, torch::optim::Optimizer&) {
    TrainingState state;
    state.epoch = 1;
    state.step = 6;
    state.batch_in_epoch = 2;
    state.samples = 20 + epoch_samples;
    state.epoch_samples = epoch_samples;
    return state;
  };
  return hooks;
}

TEST(Trainer, GoesOnWithinAnEpochWhateverTheEpochsBefore) {
  EXPECT_EQ(run_tiny(1, tiny_config(), from_within_an_epoch())[0].losses.size(), 6u * 3 - 2);
}

TEST(Trainer, RefusesToGoOnWithinAnEpochOfFewerSamples) {
  const auto error = error_of([&] { run_tiny(1, tiny_config(), from_within_an_epoch(24)); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(std::string(error.what()).find("after 24 of its samples, and the data have 24"),
            std::string::npos)
      << error.what();
}

// 4 of 24 were taken in batches of 2 of one rank. The other 20 are 5 steps of 4, the last of 6.
TEST(Trainer, GoesOnWithinAnEpochOfOtherBatches) {
  const auto run = run_tiny(1, tiny_config(), from_within_an_epoch(4))[0];
  EXPECT_EQ(run.losses.size(), 5U + 2 * 6);
  EXPECT_EQ(run.taken.at(1).size(), 20U);
  EXPECT_EQ(
      run.dealing,
      "4 of 24 samples of epoch 2 were used by 1 rank; the rest is dealt to 1 in 5 steps, and "
      "an epoch's steps are counted for 1 rank from here: [1/6] are done");
}

TEST(Trainer, GoesOnWithinAnEpochOnOtherVirtualRanks) {
  auto config = tiny_config();
  config.parallel.virtual_ranks = 2;
  config.train.loader.batch_size = 2;
  const auto run = run_tiny(1, config, from_within_an_epoch())[0];
  EXPECT_EQ(run.taken.at(1).size(), 16U);
  EXPECT_EQ(run.state.epoch, 4);
}

// 16 samples are left, 4 steps: one optimizer step of 3 and one of the last.
TEST(Trainer, CountsOptimizerStepsFromWhereItTookAnEpochUp) {
  auto config = tiny_config();
  config.train.gradient_accumulation_steps = 3;
  const auto run = run_tiny(1, config, from_within_an_epoch())[0];
  EXPECT_EQ(run.state.step, 6 + 2 + 2 * 2);
}

// Epochs of 6 steps. Batches that no epoch would use are not made ahead.
TEST(Trainer, TellsTheNextEpochAheadButForTheLast) {
  using Epochs = std::vector<int64_t>;
  auto config = tiny_config();
  EXPECT_EQ(run_tiny(1, config)[0].told_ahead, (Epochs{1, 2, 3}));
  config.train.max_steps = 12;
  EXPECT_EQ(run_tiny(1, config)[0].told_ahead, Epochs{1});
  config.train.max_steps = 13;
  EXPECT_EQ(run_tiny(1, config)[0].told_ahead, (Epochs{1, 2}));
  config.train.gradient_accumulation_steps = 4;  // 2 optimizer steps an epoch
  config.train.max_steps = 4;
  EXPECT_EQ(run_tiny(1, config)[0].told_ahead, Epochs{1});
  EXPECT_EQ(run_tiny(1, tiny_config(), from_within_an_epoch())[0].told_ahead, (Epochs{2, 3}));
}

struct Membership {
  int ranks;
  int64_t steps;  ///< Of this generation, in the count of all generations.
};

/// Samples over all ranks, by epoch, of a job with a changing number of ranks; the state at its
/// end.
TrainingState run_elastic(const std::vector<Membership>& generations, Config config,
                          std::map<int64_t, std::vector<int64_t>>& taken,
                          std::vector<double>& lrs) {
  const TempFolder dir;
  config.train.ckpt_save_dir = dir.path();
  TrainingLog log({.file = {}, .console = false});
  TinyHooks hooks;  // with batch norm, which rejects a batch of one sample
  hooks.add_callbacks = [&](Trainer& trainer) { trainer.add(std::make_shared<Checkpoints>(log)); };
  TrainingState state;
  for (const auto& generation : generations) {
    config.train.max_steps = generation.steps;
    const auto runs = run_tiny(generation.ranks, config, hooks);
    for (const auto& run : runs) {
      for (const auto& [epoch, samples] : run.taken) {
        taken[epoch].insert(taken[epoch].end(), samples.begin(), samples.end());
      }
    }
    lrs.insert(lrs.end(), runs[0].lrs.begin(), runs[0].lrs.end());
    state = runs[0].state;
    hooks.start = [&](torch::nn::Module& model, torch::optim::Optimizer& optimizer) {
      return load_checkpoint(dir.path(), model, optimizer, config.model.name());
    };
  }
  return state;
}

// Joins, losses, and both within an epoch, more than once.
TEST(Trainer, EverySampleOfAnEpochIsUsedOnceWhateverBecomesOfTheRanks) {
  auto config = tiny_config();
  config.train.loader = {.shuffle = true, .batch_size = 2, .drop_remainder = false};
  config.scheduler.num_epochs = 3;
  for (const auto& generations : std::vector<std::vector<Membership>>{
           {{1, 5}, {2, 0}},                          // a join
           {{2, 2}, {1, 0}},                          // a loss
           {{3, 1}, {2, 2}, {4, 3}, {1, 6}, {3, 0}},  // both, thrice in an epoch
           {{1, 3}, {3, 5}, {2, 13}, {3, 14}, {1, 15}, {2, 0}}}) {
    std::map<int64_t, std::vector<int64_t>> taken;
    std::vector<double> lrs;
    const auto state = run_elastic(generations, config, taken, lrs);
    const std::string what = ::testing::PrintToString(generations.size()) + " generations";
    EXPECT_EQ(state.epoch, 3) << what;
    int64_t samples = 0;
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      samples += std::ssize(taken[epoch]);
      std::set<int64_t> once(taken[epoch].begin(), taken[epoch].end());
      EXPECT_EQ(once.size(), 24U) << what << ", epoch " << epoch;
      EXPECT_LT(taken[epoch].size(), 24U + 2 * 4)
          << what << ", epoch " << epoch << ": padding alone";
    }
    EXPECT_EQ(state.samples, samples) << what;
    EXPECT_TRUE(std::is_sorted(lrs.rbegin(), lrs.rend())) << what << ": the schedule goes on";
    EXPECT_EQ(lrs.front(), 0.05) << what;
  }
}

// The last epoch runs on two ranks alone: its rates are those of a run on two ranks. In the epoch
// before, 10 of 24 samples are used, and the rest continues from there.
TEST(Trainer, AfterAChangeTheScheduleIsThatOfTheNewRanks) {
  auto config = tiny_config();
  config.train.loader = {.shuffle = true, .batch_size = 2, .drop_remainder = false};
  config.scheduler.num_epochs = 2;
  std::map<int64_t, std::vector<int64_t>> taken;
  std::vector<double> lrs;
  run_elastic({{1, 5}, {2, 0}}, config, taken, lrs);
  const auto two = run_tiny(2, config)[0].lrs;
  ASSERT_EQ(two.size(), 12U);
  ASSERT_EQ(lrs.size(), 5U + 4 + 6);  // 14 samples are left: 4 steps of two ranks
  EXPECT_EQ(std::vector<double>(lrs.end() - 6, lrs.end()),
            std::vector<double>(two.end() - 6, two.end()));
  for (size_t i = 0; i < 4; ++i) {
    const double step = 6 * (10 + 4 * static_cast<double>(i)) / 24;
    EXPECT_DOUBLE_EQ(lrs[5 + i], learning_rate(config.scheduler, step, 6)) << i;
  }
}

// One epoch of one rank is 6 steps with drop_remainder; 2 samples cannot make a batch of 3 ranks.
TEST(Trainer, AnEpochOfWhichNoBatchIsLeftEnds) {
  auto config = tiny_config();
  config.scheduler.num_epochs = 2;
  std::map<int64_t, std::vector<int64_t>> taken;
  std::vector<double> lrs;
  const auto state = run_elastic({{1, 5}, {3, 0}}, config, taken, lrs);
  EXPECT_EQ(state.epoch, 2);
  EXPECT_EQ(taken[0].size(), 20U);
  EXPECT_EQ(taken[1].size(), 24U);
}

}  // namespace
}  // namespace lockstep
