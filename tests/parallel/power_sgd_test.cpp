#include "lockstep/parallel/power_sgd.h"

#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <limits>

#include "lockstep/distributed_data_parallel.h"
#include "tests/support/error_of.h"
#include "tests/support/ranks.h"

namespace lockstep {
namespace {

using testing::run_rank_threads;

/// A matrix and a vector with given gradients.
struct PairImpl : torch::nn::Module {
  torch::Tensor m = register_parameter("m", torch::zeros({40, 3, 10}));
  torch::Tensor v = register_parameter("v", torch::zeros({7}));
  torch::Tensor forward(const torch::Tensor& of_m, const torch::Tensor& of_v) {
    return (m * of_m).sum() + (v * of_v).sum();
  }
};
TORCH_MODULE(Pair);

/// A matrix of rank 1, a different one for each rank of the job.
torch::Tensor rank_one(int seed) {
  const auto column = (torch::arange(40, torch::kFloat) * (seed + 0.3)).sin();
  const auto row = (torch::arange(30, torch::kFloat) * (seed + 0.6)).cos();
  return torch::outer(column, row).view({40, 3, 10});
}

// The average of two matrices of rank 1 has rank 2.
TEST(PowerSgd, IsExactWhenTheAverageHasTheRank) {
  run_rank_threads(2, [](World world) {
    Pair net;
    const auto hook = make_power_sgd_hook({.rank = 2, .start_step = 1});
    auto model = DistributedDataParallel(net, ProcessGroup::create(world), {.comm_hook = hook});
    const auto mean = (rank_one(0) + rank_one(1)) / 2;
    for (int step = 0; step < 6; ++step) {
      model.zero_grad();
      model(rank_one(world.rank), torch::full({7}, 1.0F + 2 * world.rank)).backward();
      EXPECT_TRUE(net->v.grad().eq(2).all().item<bool>()) << "travels whole";
      if (step > 0 && step < 5) continue;  // the guess becomes a basis of the columns
      EXPECT_LT((net->m.grad() - mean).abs().max().item<double>(), 1e-4) << "step " << step;
    }
  });
}

// The error of a product is added later: the sum of the averages stays close to the true one.
TEST(PowerSgd, LosesNothingOverManySteps) {
  constexpr int kSteps = 300;
  std::vector<torch::Tensor> sums(2);
  run_rank_threads(2, [&](World world) {
    Pair net;
    const auto hook = make_power_sgd_hook({.rank = 1, .start_step = 1});
    auto model = DistributedDataParallel(net, ProcessGroup::create(world), {.comm_hook = hook});
    const auto slope = [](int rank) { return rank_one(rank) + 0.5 * rank_one(rank + 2); };
    const auto mean = (slope(0) + slope(1)) / 2;
    auto sum = torch::zeros_like(net->m);
    for (int step = 0; step < kSteps; ++step) {
      model.zero_grad();
      model(slope(world.rank), torch::zeros({7})).backward();
      sum += net->m.grad();
    }
    EXPECT_LT(((sum / kSteps - mean).norm() / mean.norm()).item<double>(), 0.05);
    sums[static_cast<size_t>(world.rank)] = sum;
  });
  EXPECT_TRUE(sums[0].equal(sums[1])) << "between ranks";
}

// In one step the gradient is infinite on one rank: a matrix's, then that of a vector, which is
// sent whole. If training continues all the same (a loss scaler skips the step), so does the hook.
TEST(PowerSgd, RecoversFromAGradientThatIsNotFinite) {
  for (const bool in_matrix : {true, false}) {
    run_rank_threads(2, [&](World world) {
      Pair net;
      const auto hook = make_power_sgd_hook({.rank = 2, .start_step = 1});
      auto model = DistributedDataParallel(net, ProcessGroup::create(world), {.comm_hook = hook});
      const auto mean = (rank_one(0) + rank_one(1)) / 2;
      for (int step = 0; step < 8; ++step) {
        model.zero_grad();
        const float bad = step == 2 && world.rank == 1 ? std::numeric_limits<float>::infinity() : 1;
        model(rank_one(world.rank) * (in_matrix ? bad : 1),
              torch::full({7}, 1.0F + 2 * world.rank) * (in_matrix ? 1 : bad))
            .backward();
        const auto& broken = in_matrix ? net->m.grad() : net->v.grad();
        EXPECT_EQ(broken.isfinite().all().item<bool>(), step != 2) << step;
        if (step <= 2) continue;
        EXPECT_TRUE(net->v.grad().eq(2).all().item<bool>()) << step;
        if (step < 7) continue;
        EXPECT_LT((net->m.grad() - mean).abs().max().item<double>(), 1e-4);
      }
    });
  }
}

// The other gradients of its bucket are all sent thin.
TEST(PowerSgd, TakesAGradientWithoutElements) {
  struct WithNothing : torch::nn::Module {
    torch::Tensor m = register_parameter("m", torch::zeros({40, 30}));
    torch::Tensor nothing = register_parameter("nothing", torch::zeros({0}));
    torch::Tensor forward() { return m.sum() + nothing.sum(); }
  };
  run_rank_threads(2, [](World world) {
    const auto net = std::make_shared<WithNothing>();
    const auto hook = make_power_sgd_hook({.start_step = 1});
    auto model = DistributedDataParallel(net, ProcessGroup::create(world), {.comm_hook = hook});
    for (int step = 0; step < 3; ++step) {
      model.zero_grad();
      model().backward();
      EXPECT_TRUE(torch::allclose(net->m.grad(), torch::ones({40, 30}), 1e-4, 1e-4)) << step;
    }
  });
}

TEST(PowerSgd, RefusesOptionsWithoutSense) {
  const Error error = error_of([] { make_power_sgd_hook({.rank = 0}); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_STREQ(error.what(), "PowerSGD: rank is 0; it must be at least 1");
  for (const auto& [options, text] :
       {std::pair<PowerSgdOptions, std::string>{{.start_step = 0},
                                                "start_step is 0; it must be at least 1"},
        {{.min_saving = 0}, "min_saving is 0; it must be greater than 0"}}) {
    const Error other = error_of([given = options] { make_power_sgd_hook(given); });
    EXPECT_EQ(other.code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(other.what(), "PowerSGD: " + text);
  }
}

}  // namespace
}  // namespace lockstep
