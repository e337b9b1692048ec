// The keys of draws by weights, on any number of ranks and after a resume.

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "lockstep/distributed_sampler.h"
#include "tests/train/tiny.h"

namespace lockstep {
namespace {

/// Of 24 samples: the first 12 come thrice as often as the others.
std::vector<double> two_weights() {
  std::vector<double> weights(24, 1);
  std::fill_n(weights.begin(), 12, 3.0);
  return weights;
}

/// Key and sample of all draws of an epoch, sorted; of all ranks.
std::vector<std::pair<int64_t, int64_t>> draws_of(const std::vector<TinyRun>& runs, int64_t epoch) {
  std::vector<std::pair<int64_t, int64_t>> draws;
  for (const auto& run : runs) {
    const auto& samples = run.taken.at(epoch);
    const auto& keys = run.keys.at(epoch);
    EXPECT_EQ(keys.size(), samples.size());
    for (size_t i = 0; i < keys.size(); ++i) draws.emplace_back(keys[i], samples[i]);
  }
  std::sort(draws.begin(), draws.end());
  return draws;
}

/// Those of the places from `taken` on in the list of an epoch.
std::vector<std::pair<int64_t, int64_t>> places_of(int64_t epoch, int64_t taken = 0) {
  const auto list = weighted_order(two_weights())(24, epoch);
  std::vector<std::pair<int64_t, int64_t>> places;
  for (int64_t i = taken; i < 24; ++i) places.emplace_back(i, list[static_cast<size_t>(i)]);
  return places;
}

Config weighted_config(int64_t virtual_ranks) {
  auto config = tiny_config();
  config.train.loader = {.shuffle = true, .batch_size = 2, .drop_remainder = false};
  config.scheduler.num_epochs = 3;
  config.parallel.virtual_ranks = virtual_ranks;
  return config;
}

/// One rank used the first `batches` batches of 2 of the second epoch.
TinyHooks resumed(int64_t batches) {
  TinyHooks hooks;
  hooks.weights = two_weights();
  hooks.start = [=](torch::nn::Module&, torch::optim::Optimizer&) {
    TrainingState state;
    state.epoch = 1;
    state.step = 12 + batches;
    state.batch_in_epoch = batches;
    state.samples = 24 + 2 * batches;
    state.epoch_samples = 2 * batches;
    return state;
  };
  return hooks;
}

TEST(DrawKeys, KeysArePlacesInTheEpochOnAnyNumberOfRanks) {
  TinyHooks hooks;
  hooks.weights = two_weights();
  for (const int ranks : {1, 2, 3}) {
    for (const int64_t virtual_ranks : {0, 6}) {
      const auto runs = run_tiny(ranks, weighted_config(virtual_ranks), hooks);
      for (int64_t epoch = 0; epoch < 3; ++epoch) {
        EXPECT_EQ(draws_of(runs, epoch), places_of(epoch)) << ranks << " of " << virtual_ranks;
      }
    }
  }
  for (const auto& run : run_tiny(2, weighted_config(0))) EXPECT_TRUE(run.keys.empty());
}

TEST(DrawKeys, DroppedDrawsHaveNoKeys) {
  TinyHooks hooks;
  hooks.weights = two_weights();
  auto config = weighted_config(0);
  config.train.loader.batch_size = 5;
  config.train.loader.drop_remainder = true;
  auto places = places_of(1);
  places.resize(20);
  EXPECT_EQ(draws_of(run_tiny(2, config, hooks), 1), places);
}

TEST(DrawKeys, KeysGoOnWithinAnEpoch) {
  const TinyHooks hooks = resumed(4);
  for (const int ranks : {1, 2}) {
    for (const int64_t virtual_ranks : {0, 4}) {
      const auto runs = run_tiny(ranks, weighted_config(virtual_ranks), hooks);
      EXPECT_EQ(draws_of(runs, 1), places_of(1, 8)) << ranks << " of " << virtual_ranks;
      EXPECT_EQ(draws_of(runs, 2), places_of(2)) << ranks << " of " << virtual_ranks;
    }
  }
}

// 14 draws are left to 4 virtual ranks: the last two have the epoch's first two as padding.
TEST(DrawKeys, PaddingRepeatsDrawsWithTheirKeys) {
  const TinyHooks hooks = resumed(5);
  auto expected = places_of(1, 10);
  const auto all = places_of(1);
  expected.insert(expected.begin(), all.begin(), all.begin() + 2);
  EXPECT_EQ(draws_of(run_tiny(2, weighted_config(4), hooks), 1), expected);
}

}  // namespace
}  // namespace lockstep
