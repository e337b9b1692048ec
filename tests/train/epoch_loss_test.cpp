#include "lockstep/train/epoch_loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>

#include "lockstep/train/resume.h"

namespace lockstep {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

/// Adds a loss of one batch, as the trainer does.
void add_batch(TrainingState& state, double loss, std::optional<double> items = {}) {
  add_loss(state, {loss, 1, items});
  ++state.batch_in_epoch;
}

TEST(EpochLoss, IsTheMeanOverBatchesWithoutItems) {
  TrainingState state;
  EXPECT_EQ(mean_loss(state), 0);
  add_batch(state, 0.1);
  add_batch(state, 0.2);
  EXPECT_EQ(state.epoch_loss, 0.1 + 0.2);
  add_batch(state, kNoNumber);
  EXPECT_EQ(state.epoch_loss, 0.1 + 0.2 + (0.1 + 0.2) / 2);
  EXPECT_EQ(mean_loss(state), state.epoch_loss / 3);
  EXPECT_FALSE(state.epoch_items);
  add_loss(state, {1, 5, {}});
  EXPECT_EQ(state.epoch_loss, 0.1 + 0.2 + (0.1 + 0.2) / 2 + 5) << "of five micro-steps";
}

TEST(EpochLoss, IsTheMeanOverItems) {
  TrainingState state;
  add_batch(state, 0, 0);
  EXPECT_TRUE(std::isnan(mean_loss(state)));
  add_batch(state, kNoNumber, 0);
  add_batch(state, 1, 6);
  add_batch(state, 5, 2);
  EXPECT_EQ(mean_loss(state), 2);
  add_batch(state, kNoNumber, 100);
  EXPECT_EQ(mean_loss(state), 2);
  EXPECT_EQ(state.epoch_items, 108);
}

TEST(EpochLoss, OfAnEpochThatBeganWithTheOtherMean) {
  TrainingState state;
  add_batch(state, 100);
  add_batch(state, 3, 2);
  EXPECT_EQ(mean_loss(state), 3) << "the batch before has no number of items";
  add_batch(state, 6);
  EXPECT_EQ(mean_loss(state), 4) << "each of the two batches before has 3";
  TrainingState empty;
  add_batch(empty, 0, 0);
  add_batch(empty, 4);
  EXPECT_EQ(mean_loss(empty), 2);
}

// 8 of 24 samples were taken in 2 steps of 4; they are 1 of 8.
TEST(EpochLoss, StaysWhereOtherRanksGoOn) {
  for (const bool counts : {false, true}) {
    TrainingState state;
    add_batch(state, 1, counts ? std::optional(6.0) : std::nullopt);
    add_batch(state, 5, counts ? std::optional(2.0) : std::nullopt);
    state.schedule_step = 2;
    state.epoch_samples = 8;
    EXPECT_TRUE(recount(state, {2, 3, 2, 24}));
    EXPECT_EQ(state.batch_in_epoch, 1);
    EXPECT_EQ(mean_loss(state), counts ? 2 : 3);
  }
}

}  // namespace
}  // namespace lockstep
