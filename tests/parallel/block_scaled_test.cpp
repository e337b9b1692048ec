#include "lockstep/parallel/block_scaled.h"

#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cmath>
#include <limits>
#include <vector>

#include "lockstep/parallel/distributed_data_parallel.h"
#include "tests/support/ranks.h"

namespace lockstep {
namespace {

using testing::run_rank_threads;

struct Decoded {
  std::vector<float> values, rest;
};

Decoded round_trip(const std::vector<float>& values) {
  const auto blocks = std::ssize(values) / kScaledBlock;
  std::vector<float> aligned(static_cast<size_t>(scaled_bytes(blocks) / 4));
  auto* bytes = reinterpret_cast<char*>(aligned.data());
  Decoded decoded{std::vector<float>(values.size()), std::vector<float>(values.size(), 9)};
  encode_scaled(values.data(), blocks, bytes, decoded.rest.data());
  decode_scaled(bytes, blocks, decoded.values.data(), false);
  return decoded;
}

TEST(BlockScaled, RoundsToAPartOfTheBlocksLargest) {
  std::vector<float> values;
  for (int i = 0; i < 3 * kScaledBlock; ++i) {
    values.push_back(std::sin(static_cast<float>(i)) * std::pow(1000.0F, i / kScaledBlock - 1.0F));
  }
  const Decoded decoded = round_trip(values);
  for (size_t i = 0; i < values.size(); ++i) {
    const float largest = std::pow(1000.0F, static_cast<float>(i / kScaledBlock) - 1.0F);
    EXPECT_LE(std::fabs(decoded.rest[i]), largest / 253) << i;
    EXPECT_NEAR(decoded.values[i] + decoded.rest[i], values[i], largest * 1e-6) << i;
  }
}

TEST(BlockScaled, EdgesOfTheRange) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  const float huge = std::numeric_limits<float>::max();
  std::vector<float> values(4 * kScaledBlock);
  values[1 * kScaledBlock] = tiny;
  values[2 * kScaledBlock] = huge;
  values[3 * kScaledBlock] = std::numeric_limits<float>::infinity();
  values[3 * kScaledBlock + 1] = 1;
  const Decoded decoded = round_trip(values);
  EXPECT_EQ(decoded.values[0], 0);
  EXPECT_EQ(decoded.rest[0], 0);
  EXPECT_EQ(decoded.values[kScaledBlock] + decoded.rest[kScaledBlock], tiny);
  EXPECT_NEAR(decoded.values[2 * kScaledBlock] / huge, 1, 1e-5);
  EXPECT_TRUE(std::isnan(decoded.values[3 * kScaledBlock + 1]));
  EXPECT_EQ(decoded.rest[3 * kScaledBlock + 1], 0);
}

/// One parameter, whose gradient is given.
struct GivenImpl : torch::nn::Module {
  torch::Tensor w = register_parameter("w", torch::zeros({1000}));
  torch::Tensor forward(const torch::Tensor& slope) { return (w * slope).sum(); }
};
TORCH_MODULE(Given);

// What rounding takes away comes with a later step: the sum of T averages is right to one rounding.
TEST(Int8Hook, LosesNothingOverManySteps) {
  constexpr int kSteps = 200;
  for (const int ranks : {2, 3}) {
    run_rank_threads(ranks, [](World world) {
      Given net;
      auto model = DistributedDataParallel(net, ProcessGroup::create(world),
                                           {.comm_hook = make_comm_hook("int8")});
      const auto slope_of = [](int rank) {
        return (torch::arange(1000, torch::kFloat) * (rank + 0.7)).sin();
      };
      torch::Tensor mean = torch::zeros({1000}), sum = torch::zeros({1000});
      for (int rank = 0; rank < world.size; ++rank) mean += slope_of(rank) / world.size;
      for (int step = 0; step < kSteps; ++step) {
        model.zero_grad();
        model(slope_of(world.rank)).backward();
        sum += net->w.grad();
        if (step == 0) {
          const double off = (sum - mean).abs().max().item<double>();
          EXPECT_GT(off, 1e-5);
          EXPECT_LT(off, 0.02);
        }
      }
      EXPECT_LT((sum - mean * kSteps).abs().max().item<double>(), 0.03);
    });
  }
}

}  // namespace
}  // namespace lockstep
