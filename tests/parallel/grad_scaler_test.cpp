// Scaled losses with data parallel training.
#include "lockstep/grad_scaler.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "lockstep/distributed_data_parallel.h"
#include "tests/support/error_of.h"
#include "tests/support/ranks.h"

namespace lockstep {
namespace {

using testing::run_rank_threads;
using torch::Tensor;

struct ScalerRun {
  std::vector<Tensor> weights;
  std::vector<double> scales;  ///< After each step.
  std::vector<bool> stepped;
};

/// Six steps; in the steps of `bad` one rank's loss has infinite gradients. With averaging all
/// ranks have them; without, that rank only.
ScalerRun train_scaled(const World& world, const std::vector<int>& bad, bool averaged, bool clips) {
  auto group = ProcessGroup::create(world);
  torch::nn::Linear net(3, 2);
  {
    const torch::NoGradGuard no_grad;
    net->weight.fill_(0.5);
    net->bias.fill_(0.25);
  }
  std::optional<DistributedDataParallel<torch::nn::Linear>> model;
  if (averaged) model.emplace(net, group);
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  GradScaler scaler(group, {.dynamic = true, .init_scale = 1024, .growth_interval = 3});
  ScalerRun run;
  for (int step = 0; step < 6; ++step) {
    optimizer.zero_grad();
    const Tensor x = torch::linspace(-1, 1, 12).view({4, 3}) * (step + 1 + world.rank);
    Tensor loss = (averaged ? model->forward(x) : net(x)).square().mean();
    const bool overflows = std::count(bad.begin(), bad.end(), step) > 0 && world.rank == 1;
    if (overflows) loss = loss * std::numeric_limits<float>::infinity();
    scaler.scale(loss).backward();
    if (clips) {
      EXPECT_EQ(scaler.unscale(optimizer), std::count(bad.begin(), bad.end(), step) == 0);
    }
    run.stepped.push_back(scaler.step(optimizer));
    scaler.update();
    run.scales.push_back(scaler.state().scale);
  }
  run.weights = {net->weight.detach().clone(), net->bias.detach().clone()};
  return run;
}

std::vector<ScalerRun> train_two(const std::vector<int>& bad, bool averaged, bool clips) {
  std::vector<ScalerRun> runs(2);
  run_rank_threads(2, [&](const World& world) {
    runs[static_cast<size_t>(world.rank)] = train_scaled(world, bad, averaged, clips);
  });
  return runs;
}

TEST(GradScaler, AllRanksLeaveOutTheSameStepsAndHaveOneScale) {
  for (const bool averaged : {true, false}) {
    for (const bool clips : {true, false}) {
      for (const auto& run : train_two({1, 4}, averaged, clips)) {
        EXPECT_EQ(run.stepped, (std::vector<bool>{true, false, true, true, false, true}));
        EXPECT_EQ(run.scales, (std::vector<double>{1024, 512, 512, 512, 256, 256}));
        for (const Tensor& weight : run.weights) EXPECT_TRUE(weight.isfinite().all().item<bool>());
      }
    }
  }
}

// Powers of two lose nothing: the weights have the bits of a run without a scale.
TEST(GradScaler, ChangesNothingButTheRange) {
  const auto scaled = train_two({}, true, false);
  EXPECT_EQ(scaled[0].scales, (std::vector<double>{1024, 1024, 2048, 2048, 2048, 4096}));
  run_rank_threads(2, [&](const World& world) {
    torch::nn::Linear net(3, 2);
    {
      const torch::NoGradGuard no_grad;
      net->weight.fill_(0.5);
      net->bias.fill_(0.25);
    }
    auto model = DistributedDataParallel(net, ProcessGroup::create(world));
    torch::optim::SGD optimizer(net->parameters(), 0.1);
    for (int step = 0; step < 6; ++step) {
      optimizer.zero_grad();
      const Tensor x = torch::linspace(-1, 1, 12).view({4, 3}) * (step + 1 + world.rank);
      model(x).square().mean().backward();
      optimizer.step();
    }
    const auto& of_rank = scaled[static_cast<size_t>(world.rank)].weights;
    EXPECT_TRUE(net->weight.equal(of_rank[0]) && net->bias.equal(of_rank[1]));
  });
}

TEST(GradScaler, ABadImaginaryPartLeavesTheStepOut) {
  run_rank_threads(1, [](const World& world) {
    auto group = ProcessGroup::create(world);
    for (const float bad :
         {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      const Tensor one = torch::ones({1});
      Tensor weight = torch::complex(one, one).requires_grad_();
      torch::optim::SGD optimizer(std::vector<Tensor>{weight}, 0.1);
      GradScaler scaler(group, {.dynamic = true, .init_scale = 8});
      weight.mutable_grad() = torch::complex(one, torch::full({1}, bad));
      EXPECT_FALSE(scaler.step(optimizer)) << bad;
      EXPECT_TRUE(weight.detach().equal(torch::complex(one, one))) << bad;
      scaler.update();
      EXPECT_EQ(scaler.state().scale, 4);
    }
  });
}

TEST(GradScaler, CallsInAnotherOrderAreRefused) {
  run_rank_threads(1, [](const World& world) {
    torch::nn::Linear net(1, 1);
    torch::optim::SGD optimizer(net->parameters(), 0.1);
    GradScaler scaler(ProcessGroup::create(world), {.init_scale = 8});
    const auto refused = [](const std::function<void()>& call, const char* text) {
      const Error error = error_of(call);
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    };
    refused([&] { scaler.update(); }, "update() without a step()");
    scaler.step(optimizer);
    refused([&] { scaler.step(optimizer); }, "step() of an optimizer twice");
    refused([&] { scaler.unscale(optimizer); }, "unscale() of an optimizer that was unscaled");
    scaler.update();
    EXPECT_EQ(scaler.state(), (LossScaleState{8, 0, 0}));
    refused([&] { GradScaler(ProcessGroup::create(world), {.growth_factor = 1}); },
            "growth_factor is 1");
  });
}

TEST(GradScaler, GoesOnFromWhatWasSaved) {
  run_rank_threads(1, [](const World& world) {
    GradScaler scaler(ProcessGroup::create(world));
    EXPECT_EQ(scaler.state().scale, 65536);
    scaler.load_state({128, 7, 3});
    EXPECT_EQ(scaler.state(), (LossScaleState{128, 7, 3}));
    EXPECT_EQ(scaler.scale(torch::ones({1})).item<float>(), 128);
  });
}

}  // namespace
}  // namespace lockstep
