#include "lockstep/comm_hook.h"

#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include "lockstep/distributed_data_parallel.h"
#include "tests/support/error_of.h"
#include "tests/support/ranks.h"

namespace lockstep {
namespace {

using testing::run_rank_threads;

/// One weight, whose gradient is the input.
struct SlopeImpl : torch::nn::Module {
  torch::Tensor w = register_parameter("w", torch::zeros({1}));
  torch::Tensor forward(double slope) { return (w * slope).sum(); }
};
TORCH_MODULE(Slope);

/// -w after each of six steps of size 1 on rank `rank` of 4; gradients are 1, 2, 3 and 4.
std::vector<double> steps_of(World world, bool in_pairs) {
  Slope net;
  auto group = ProcessGroup::create(world);
  const int first = world.rank / 2 * 2;
  const auto near = in_pairs ? group.subgroup({first, first + 1}) : group.subgroup({world.rank});
  PostLocalSgd local(group, near, {.start_step = 2, .period = 2});
  auto model = DistributedDataParallel(net, group, {.comm_hook = local.hook()});
  torch::optim::SGD optimizer(model.parameters(), 1);
  std::vector<double> weights;
  for (int step = 0; step < 6; ++step) {
    model.zero_grad();
    model(world.rank + 1).backward();
    optimizer.step();
    EXPECT_EQ(local.after_step(model.parameters()), step == 3 || step == 5) << step;
    weights.push_back(-net->w.item<double>());
  }
  return weights;
}

// Two common steps of 2.5; then one alone, one alone and the average, and so on.
TEST(PostLocalSgd, DriftsAndMeets) {
  run_rank_threads(4, [](World world) {
    const double own = world.rank + 1;
    EXPECT_EQ(steps_of(world, false), (std::vector<double>{2.5, 5, 5 + own, 10, 10 + own, 15}));
  });
  run_rank_threads(4, [](World world) {
    const double pair = world.rank < 2 ? 1.5 : 3.5;
    EXPECT_EQ(steps_of(world, true), (std::vector<double>{2.5, 5, 5 + pair, 10, 10 + pair, 15}));
  });
}

// Of two types, with strides of any kind, and empty.
TEST(PostLocalSgd, AveragesAnyTensors) {
  run_rank_threads(2, [](World world) {
    auto group = ProcessGroup::create(world);
    PostLocalSgd local(group, group.subgroup({world.rank}));
    const auto of = [&](at::IntArrayRef sizes, torch::Dtype dtype) {
      return torch::arange(c10::multiply_integers(sizes), dtype).view(sizes) + 2 * world.rank;
    };
    const std::vector<torch::Tensor> tensors = {of({2, 3}, torch::kFloat).t(),
                                                of({5}, torch::kDouble), of({0}, torch::kFloat),
                                                of({100000}, torch::kFloat)};
    local.average(tensors);
    EXPECT_TRUE(tensors[0].equal((torch::arange(6, torch::kFloat) + 1).view({2, 3}).t()));
    EXPECT_TRUE(tensors[1].equal(torch::arange(5, torch::kDouble) + 1));
    EXPECT_TRUE(tensors[3].equal(torch::arange(100000, torch::kFloat) + 1));
  });
}

TEST(PostLocalSgd, RefusesOptionsWithoutSense) {
  run_rank_threads(1, [](World world) {
    auto group = ProcessGroup::create(world);
    const Error error = error_of([&] { PostLocalSgd(group, group, {.period = 0}); });
    EXPECT_STREQ(error.what(), "post-local SGD: period is 0; it must be at least 1");
  });
}

}  // namespace
}  // namespace lockstep
