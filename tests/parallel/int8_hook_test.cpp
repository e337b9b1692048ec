#include "lockstep/parallel/int8_hook.h"

#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "lockstep/distributed_data_parallel.h"
#include "tests/support/ranks.h"

namespace lockstep {
namespace {

using testing::run_rank_threads;

/// One parameter with a given gradient.
struct GivenImpl : torch::nn::Module {
  torch::Tensor w = register_parameter("w", torch::zeros({1000}));
  torch::Tensor forward(const torch::Tensor& slope) { return (w * slope).sum(); }
};
TORCH_MODULE(Given);

// A later step returns the rounding error: the sum of T averages is exact to one rounding.
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
