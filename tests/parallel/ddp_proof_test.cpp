// What data parallel training is for: P ranks compute what one process would.
//
// Gradients are compared parameter by parameter: |g_P - g_1| / |g_1| with Euclidean norms, where
// g_1 is the gradient of the mean loss over the global batch in one process.
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/optim/sgd.h>

#include "lockstep/parallel/distributed_data_parallel.h"
#include "tests/parallel/tasks.h"
#include "tests/support/ranks.h"

namespace lockstep {
namespace {

using namespace testing;  // tasks.h and ranks.h
using torch::Tensor;

constexpr int64_t kGlobalBatch = 8;

/// Gradients of one averaged step on every rank, and of the global batch in one process.
void compare_gradients(const Task& task, int ranks, torch::Dtype dtype, double tolerance) {
  std::vector<std::vector<Tensor>> gradients(static_cast<size_t>(ranks));
  std::vector<Tensor> reference;
  run_rank_threads(ranks, [&](World world) {
    at::set_num_threads(1);
    auto net = make_seeded(task, static_cast<uint64_t>(world.rank), dtype);
    auto model = DistributedDataParallel(net, ProcessGroup::create(world));
    model.eval();  // batch-norm in evaluation mode: the loss is a mean over samples
    const Tensor x = inputs(task, kGlobalBatch, 0, dtype);
    const Tensor y = labels(kGlobalBatch);
    if (world.rank == 0) {
      reference = torch::autograd::grad({loss_of(net->forward(x), y)}, model.parameters());
    }
    const int64_t share = kGlobalBatch / world.size;
    const auto mine = [&](const Tensor& all) { return all.narrow(0, world.rank * share, share); };
    loss_of(model.forward(mine(x)), mine(y)).backward();
    for (const auto& parameter : model.parameters()) {
      gradients[static_cast<size_t>(world.rank)].push_back(parameter.grad().clone());
    }
  });
  double worst = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const Tensor& grad = gradients[0][i];
    const double relative = ((grad - reference[i]).norm() / reference[i].norm()).item<double>();
    worst = std::max(worst, relative);
    EXPECT_LE(relative, tolerance) << "parameter " << i << ", " << ranks << " ranks";
    for (const auto& other : gradients) EXPECT_TRUE(other[i].equal(grad)) << "parameter " << i;
  }
  std::printf("%d ranks %s: worst relative difference %.2e\n", ranks, c10::toString(dtype), worst);
}

TEST(DdpProof, MlpGradientsAreThoseOfOneProcess) {
  for (const int ranks : {2, 4}) {
    compare_gradients(mlp_task(), ranks, torch::kFloat, 1e-6);
    compare_gradients(mlp_task(), ranks, torch::kDouble, 1e-12);
  }
}

TEST(DdpProof, Resnet18GradientsAreThoseOfOneProcess) {
  for (const int ranks : {2, 4}) {
    compare_gradients(resnet_task("resnet18", 8), ranks, torch::kFloat, 1e-6);
    compare_gradients(resnet_task("resnet18", 8), ranks, torch::kDouble, 1e-12);
  }
}

TEST(DdpProof, Resnet50GradientsAreThoseOfOneProcess) {
  for (const int ranks : {2, 4}) {
    compare_gradients(resnet_task("resnet50", 8), ranks, torch::kFloat, 1e-6);
    compare_gradients(resnet_task("resnet50", 8), ranks, torch::kDouble, 1e-12);
  }
}

/// Weights and buffers of every rank after `steps` steps in training mode.
std::vector<std::vector<Tensor>> train(const Task& task, int ranks, int steps, double lr) {
  std::vector<std::vector<Tensor>> states(static_cast<size_t>(ranks));
  run_rank_threads(ranks, [&](World world) {
    at::set_num_threads(1);
    auto net = make_seeded(task, static_cast<uint64_t>(world.rank), torch::kFloat);
    auto model = DistributedDataParallel(net, ProcessGroup::create(world));
    torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(lr).momentum(0.9));
    for (int step = 0; step < steps; ++step) {
      model.zero_grad();
      const Tensor x = inputs(task, 2, step * world.size + world.rank, torch::kFloat);
      loss_of(model.forward(x), labels(2)).backward();
      optimizer.step();
    }
    auto& state = states[static_cast<size_t>(world.rank)];
    for (const auto& parameter : net->parameters()) state.push_back(parameter.detach());
  });
  return states;
}

/// After 50 steps, between the ranks and between two runs.
void expect_equal_bits(const Task& task, int ranks, double lr) {
  const auto first = train(task, ranks, 50, lr);
  const auto second = train(task, ranks, 50, lr);
  for (size_t i = 0; i < first[0].size(); ++i) {
    ASSERT_TRUE(first[0][i].isfinite().all().item<bool>());
    for (const auto& rank : first) EXPECT_TRUE(rank[i].equal(first[0][i])) << "between ranks";
    for (const auto& rank : second) EXPECT_TRUE(rank[i].equal(first[0][i])) << "between runs";
  }
}

TEST(DdpProof, MlpWeightsAreEqualBitForBitAfter50Steps) {
  expect_equal_bits(mlp_task(), 2, 0.01);
  expect_equal_bits(mlp_task(), 4, 0.01);
}

TEST(DdpProof, Resnet18WeightsAreEqualBitForBitAfter50Steps) {
  expect_equal_bits(resnet_task("resnet18", 8), 2, 0.01);
}

/// Between ranks only: a second run would cost as much again.
void expect_ranks_agree(const Task& task, int ranks, int steps) {
  const auto states = train(task, ranks, steps, 0.01);
  for (size_t i = 0; i < states[0].size(); ++i) {
    ASSERT_TRUE(states[0][i].isfinite().all().item<bool>());
    for (const auto& rank : states) EXPECT_TRUE(rank[i].equal(states[0][i])) << "parameter " << i;
  }
}

TEST(DdpProof, Resnet18WeightsAreEqualBitForBitOn4RanksAfter50Steps) {
  expect_ranks_agree(resnet_task("resnet18", 8), 4, 50);
}

TEST(DdpProof, Resnet50WeightsAreEqualBitForBitAfter50Steps) {
  expect_equal_bits(resnet_task("resnet50", 8), 2, 0.001);
}

}  // namespace
}  // namespace lockstep
