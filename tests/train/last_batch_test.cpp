#include "lockstep/train/last_batch.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include "tests/support/error_of.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;

LoaderConfig in_batches_of(int64_t size, bool drop_remainder = false) {
  LoaderConfig loader;
  loader.batch_size = size;
  loader.drop_remainder = drop_remainder;
  return loader;
}

TEST(LastBatch, OfOneSampleIsNoted) {
  EXPECT_EQ(last_batch_note(in_batches_of(4), 9),
            "the last batch of each epoch has one sample (9 are dealt in batches of 4): BatchNorm "
            "fails in a layer with one value per channel; train.loader.drop_remainder: True leaves "
            "it out");
  EXPECT_NE(last_batch_note(in_batches_of(4), 1), "");
  for (const int64_t samples : {8, 10, 11})
    EXPECT_EQ(last_batch_note(in_batches_of(4), samples), "");
  EXPECT_EQ(last_batch_note(in_batches_of(4, true), 9), "");
  EXPECT_EQ(last_batch_note(in_batches_of(1), 9), "") << "all have one";
}

TEST(LastBatch, MattersToModelsWithBatchNorm) {
  EXPECT_FALSE(has_batch_norm(*nn::Sequential(nn::Linear(2, 2))));
  EXPECT_TRUE(has_batch_norm(*nn::Sequential(nn::Sequential(nn::BatchNorm1d(2)))));
  EXPECT_TRUE(has_batch_norm(*nn::Sequential(nn::BatchNorm2d(2))));
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
