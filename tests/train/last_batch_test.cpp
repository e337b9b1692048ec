#include "lockstep/train/last_batch.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include "tests/support/error_of.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;

Config in_batches_of(int64_t size, bool drop_remainder = false) {
  Config config;
  config.train.loader.batch_size = size;
  config.train.loader.drop_remainder = drop_remainder;
  return config;
}

std::string note_of(const Config& config, int64_t samples, int ranks = 1) {
  return last_batch_note(config, *nn::Sequential(nn::Sequential(nn::BatchNorm1d(2))), samples,
                         ranks);
}

TEST(LastBatch, OfOneSampleIsNoted) {
  EXPECT_EQ(note_of(in_batches_of(4), 9),
            "the last batch of each epoch has one sample (9 are dealt in batches of 4): BatchNorm "
            "fails in a layer with one value per channel; train.loader.drop_remainder: True leaves "
            "it out");
  EXPECT_NE(note_of(in_batches_of(4), 1), "");
  for (const int64_t samples : {8, 10, 11}) EXPECT_EQ(note_of(in_batches_of(4), samples), "");
  EXPECT_EQ(note_of(in_batches_of(4, true), 9), "");
  EXPECT_EQ(note_of(in_batches_of(1), 9), "") << "all have one";
}

TEST(LastBatch, MattersToModelsWithBatchNorm) {
  const auto config = in_batches_of(4);
  EXPECT_EQ(last_batch_note(config, *nn::Sequential(nn::Linear(2, 2)), 9, 1), "");
  EXPECT_NE(last_batch_note(config, *nn::Sequential(nn::BatchNorm2d(2)), 9, 1), "");
}

TEST(LastBatch, HasTheSamplesOfAllRanksWithSyncBatchNorm) {
  auto config = in_batches_of(4);
  config.parallel.sync_bn = true;
  EXPECT_EQ(note_of(config, 9, 2), "");
  EXPECT_NE(note_of(config, 9, 1), "");
}

/// The error of `layer` for as many rows, as the trainer gives it.
Error refusal(nn::BatchNorm1d layer, const at::Tensor& rows) {
  return error_of([&] {
    try {
      layer->forward(rows);
    } catch (const c10::Error& error) {
      explain(error, rows.size(0));
    }
  });
}

TEST(LastBatch, BatchNormsRefusalIsExplained) {
  const auto error = refusal(nn::BatchNorm1d(3), at::ones({1, 3}));
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_STREQ(
      error.what(),
      "the batch has one sample, the last one of the epoch: Expected more than 1 value per "
      "channel when training, got input size [1, 3]; train.loader.drop_remainder: True "
      "leaves it out");
}

TEST(LastBatch, OtherErrorsStay) {
  bool refused = false;
  try {
    nn::BatchNorm1d(3)->forward(at::ones({2, 4}));
  } catch (const c10::Error& error) {
    refused = true;
    EXPECT_THROW(explain(error, 1), c10::Error);
  }
  EXPECT_TRUE(refused);
}

}  // namespace
}  // namespace lockstep
