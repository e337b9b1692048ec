// Ranks with different numbers of batches.
#include "lockstep/parallel/join.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include "lockstep/distributed_data_parallel.h"
#include "lockstep/sync_batch_norm.h"
#include "tests/parallel/two_heads.h"
#include "tests/support/error_of.h"
#include "tests/support/ranks.h"

namespace lockstep {
namespace {

using namespace testing;  // two_heads.h and ranks.h
using torch::Tensor;

TEST(JoinRound, TheLowestRankWithDataLeads) {
  const std::vector<JoinState> states = {{0, 0}, {1, 1}, {1, 0}, {0, 0}};
  const JoinRound round = read_join_round(states);
  EXPECT_EQ(round.leader, 1);
  EXPECT_EQ(round.num_active, 2);
  EXPECT_TRUE(round.training);
  EXPECT_EQ(round.ended, (std::vector<int>{0, 3}));
  EXPECT_EQ(read_join_round(std::vector<JoinState>(2)).leader, -1);
}

/// One weight, whose gradient is the input.
struct ScaleImpl : torch::nn::Module {
  Tensor w = register_parameter("w", torch::zeros({1}));
  Tensor forward(double x) { return (w * x).sum(); }
};
TORCH_MODULE(Scale);

/// Rank r has `batches[r]` batches with the input r + 1; the learning rate is 1.
/// Returns -w and the momentum of every rank.
std::vector<std::pair<double, double>> train_uneven(const std::vector<int>& batches, bool by_active,
                                                    bool step_in_shadow,
                                                    const DdpOptions& ddp = {}) {
  std::vector<std::pair<double, double>> results(batches.size());
  run_rank_threads(static_cast<int>(batches.size()), [&](World world) {
    const auto r = static_cast<size_t>(world.rank);
    Scale net;
    auto model = DistributedDataParallel(net, ProcessGroup::create(world), ddp);
    torch::optim::SGD optimizer({net->w}, torch::optim::SGDOptions(1).momentum(0.5));
    JoinOptions options{.divide_by_active = by_active};
    if (step_in_shadow) options.on_shadow_step = [&] { optimizer.step(); };
    model.join(
        [&] {
          for (int step = 0; step < batches[r]; ++step) {
            model.zero_grad();
            model(world.rank + 1.0).backward();
            optimizer.step();
          }
        },
        options);
    model.zero_grad();
    model(0).backward();  // the group is in step, and averages are plain again
    EXPECT_EQ(net->w.grad().item<float>(), 0);
    const double weight = -net->w.item<double>();
    optimizer.step();  // momentum alone: half the last move
    results[r] = {weight, -net->w.item<double>() - weight};
  });
  return results;
}

// Gradients: (1 + 2 + 3) / 3 = 2 for the common batch, then (2 + 3) / 3, then 3 / 3.
TEST(Join, RanksThatRanOutCountAsZero) {
  const auto results = train_uneven({1, 2, 3}, false, false);
  const double second = 0.5 * 2 + 5.0 / 3, third = 0.5 * second + 1;
  for (const auto& [weight, momentum] : results) EXPECT_NEAR(weight, 2 + second + third, 1e-5);
  EXPECT_NEAR(results[2].second, third / 2, 1e-5);
  EXPECT_NEAR(results[0].second, 1, 1e-5) << "the optimizer of rank 0 has seen one step";
}

TEST(Join, AveragesMayBeThoseOfTheActiveRanks) {
  const auto results = train_uneven({1, 2, 3}, true, false);
  const double second = 0.5 * 2 + 2.5, third = 0.5 * second + 3;
  for (const auto& [weight, momentum] : results) EXPECT_NEAR(weight, 2 + second + third, 1e-5);
}

TEST(Join, OptimizerStepsInTheShadowKeepItsStateEqual) {
  const auto results = train_uneven({3, 1, 0}, false, true);
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
  EXPECT_GT(results[0].first, 0);
}

TEST(Join, RankZeroMayHaveNothing) {
  for (const bool find_unused : {false, true}) {
    const auto results =
        train_uneven({0, 2}, false, false, {.find_unused_parameters = find_unused});
    for (const auto& [weight, momentum] : results) EXPECT_NEAR(weight, 1 + 1.5, 1e-5);
  }
  const auto results = train_uneven({0, 2}, false, false, {.static_graph = true});
  for (const auto& [weight, momentum] : results) EXPECT_NEAR(weight, 1 + 1.5, 1e-5);
}

TEST(Join, EqualInputsAndNoneAtAllChangeNothing) {
  for (const auto& [weight, momentum] : train_uneven({2, 2}, false, false)) {
    EXPECT_NEAR(weight, 1.5 + 2.25, 1e-5);
  }
  for (const auto& [weight, momentum] : train_uneven({0, 0}, false, false)) EXPECT_EQ(weight, 0);
  for (const auto& [weight, momentum] : train_uneven({2}, false, false)) EXPECT_EQ(weight, 2.5);
}

TEST(Join, ALineSaysWhoEndedFirstAndWhoNext) {
  ::testing::internal::CaptureStderr();
  train_uneven({2, 1, 4}, false, false);
  const std::string lines = ::testing::internal::GetCapturedStderr();
  std::vector<std::string> said;
  for (size_t at = 0; (at = lines.find("uneven inputs: ", at)) != std::string::npos; ++at) {
    said.push_back(lines.substr(at, lines.find('\n', at) - at));
  }
  EXPECT_EQ(said,
            (std::vector<std::string>{
                "uneven inputs: rank 1 ran out of data first, after 1 step; 2 of 3 ranks go on",
                "uneven inputs: ranks 0, 1 ran out of data after 2 steps; 1 of 3 ranks go on"}))
      << lines;
}

// Buffers, small and large parameters, hooks, buckets that are formed anew while one shadows.
TEST(Join, LeavesModulesEqualBitForBit) {
  for (const char* hook : {"none", "bf16"}) {
    std::vector<std::vector<Tensor>> states(3);
    run_rank_threads(3, [&](World world) {
      torch::nn::Sequential net(torch::nn::Linear(4, 1024), torch::nn::BatchNorm1d(1024),
                                torch::nn::Linear(1024, 600));
      auto model = DistributedDataParallel(net, ProcessGroup::create(world),
                                           {.comm_hook = make_comm_hook(hook)});
      torch::optim::SGD optimizer(model.parameters(), 0.01);
      model.join([&] {
        for (int step = 0; step < 2 * world.rank; ++step) {
          optimizer.zero_grad();
          model.forward(torch::ones({2, 4}) * (step + world.rank)).square().mean().backward();
          optimizer.step();
        }
      });
      auto& state = states[static_cast<size_t>(world.rank)];
      for (const auto& tensor : net->parameters()) state.push_back(tensor.detach());
      for (const auto& tensor : net->buffers()) state.push_back(tensor);
    });
    for (size_t i = 0; i < states[0].size(); ++i) {
      for (const auto& state : states) EXPECT_TRUE(state[i].equal(states[2][i])) << i;
    }
    EXPECT_EQ(states[0].back().item<int64_t>(), 4) << "batches of the rank that was last";
  }
}

TEST(JoinErrors, EveryRankFailsWhenUnevenIsNotAllowed) {
  run_rank_threads(2, [](World world) {
    Scale net;
    auto model = DistributedDataParallel(net, ProcessGroup::create(world));
    const Error error = error_of([&] {
      model.join(
          [&] {
            for (int step = 0; step < 1 + world.rank; ++step) model(1).backward();
          },
          {.throw_when_uneven = true});
    });
    EXPECT_EQ(error.code(), ErrorCode::kMismatch);
    EXPECT_NE(std::string(error.what())
                  .find("rank 0 ran out of data first, after 1 step; 1 of 2 ranks go on"),
              std::string::npos)
        << error.what();
  });
}

TEST(JoinErrors, CallRanksByTheirNumbersInTheWorld) {
  run_rank_threads(3, [](World world) {
    const auto all = ProcessGroup::create(world);
    if (world.rank == 0) return;
    Scale net;
    auto model = DistributedDataParallel(net, all.subgroup({1, 2}));
    const Error error = error_of([&] {
      model.join(
          [&] {
            for (int step = 0; step < world.rank; ++step) model(1).backward();
          },
          {.throw_when_uneven = true});
    });
    EXPECT_NE(std::string(error.what()).find("rank 1 ran out of data"), std::string::npos)
        << error.what();
  });
}

TEST(JoinErrors, RefusesJoinWithinJoin) {
  run_rank_threads(1, [](World world) {
    Scale net;
    auto model = DistributedDataParallel(net, ProcessGroup::create(world));
    const Error error = error_of([&] { model.join([&] { model.join([] {}); }); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  });
}

TEST(JoinErrors, RefusesBatchNormThatWaitsForEveryRank) {
  run_rank_threads(2, [](World world) {
    auto group = ProcessGroup::create(world);
    const auto net = std::make_shared<torch::nn::SequentialImpl>(torch::nn::Linear(2, 2),
                                                                 torch::nn::BatchNorm1d(2));
    auto model = DistributedDataParallel(net, group);
    model.join([] {});  // plain batch norm
    EXPECT_EQ(convert_sync_batchnorm(*net, group), 1);
    const Error error = error_of([&] { model.join([] {}); });
    EXPECT_NE(std::string(error.what()).find("synchronised batch norm"), std::string::npos)
        << error.what();
  });
}

}  // namespace
}  // namespace lockstep
