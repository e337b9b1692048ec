// The purpose of data parallel training: P ranks compute the same as one process.
//
// Compared with one process that takes the global batch in P pieces: the same bits. Compared with
// one that takes it whole: |g_P - g_1| / |g_1| with Euclidean norms, g_1 the gradient of the mean
// loss, of each parameter. The remaining difference is that of libtorch's own matrix products,
// whose order depends on the batch.
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cmath>

#include "lockstep/distributed_data_parallel.h"
#include "tests/parallel/tasks.h"
#include "tests/support/ranks.h"

namespace lockstep {
namespace {

using namespace testing;  // tasks.h and ranks.h
using torch::Tensor;

constexpr int64_t kGlobalBatch = 8;

using Gradients = std::vector<Tensor>;

Gradients gradients_of(Model& net, const Tensor& x, const Tensor& y) {
  return torch::autograd::grad({loss_of(net.forward(x), y)}, net.parameters());
}

/// The mean of `pieces`' gradients, added in the order of the reduction tree.
Gradients mean_of(std::vector<Gradients> pieces) {
  const auto count = static_cast<double>(pieces.size());
  for (; pieces.size() > 1; pieces.resize(pieces.size() / 2)) {  // a power of two of them
    for (size_t i = 0; i < pieces.size() / 2; ++i) {
      pieces[i] = at::_foreach_add(pieces[2 * i], pieces[2 * i + 1]);
    }
  }
  return at::_foreach_div(pieces.front(), count);
}

double norm_of(const Gradients& gradients) {
  double squares = 0;
  for (const auto& grad : gradients) squares += std::pow(grad.norm().item<double>(), 2);
  return std::sqrt(squares);
}
double relative_difference(const Gradients& a, const Gradients& b) {
  return norm_of(at::_foreach_sub(a, b)) / norm_of(b);
}

struct Compared {
  std::vector<Gradients> by_rank;  ///< Of one averaged step.
  Gradients in_pieces;             ///< Of one process, one piece after the other.
  Gradients whole;                 ///< Of one process and the global batch at once.
};

Compared compute(const Task& task, int ranks, torch::Dtype dtype) {
  Compared result;
  result.by_rank.resize(static_cast<size_t>(ranks));
  run_rank_threads(ranks, [&](World world) {
    at::set_num_threads(1);
    auto net = make_seeded(task, static_cast<uint64_t>(world.rank), dtype);
    auto model = DistributedDataParallel(net, ProcessGroup::create(world));
    model.eval();  // batch-norm in evaluation mode: the loss is a mean over samples
    const auto x = inputs(task, kGlobalBatch, 0, dtype).chunk(world.size);
    const auto y = labels(kGlobalBatch).chunk(world.size);
    if (world.rank == 0) {
      std::vector<Gradients> pieces;
      for (size_t i = 0; i < x.size(); ++i) pieces.push_back(gradients_of(*net, x[i], y[i]));
      result.in_pieces = mean_of(std::move(pieces));
      result.whole = gradients_of(*net, torch::cat(x), torch::cat(y));
    }
    const auto rank = static_cast<size_t>(world.rank);
    loss_of(model.forward(x[rank]), y[rank]).backward();
    for (const auto& parameter : model.parameters()) {
      result.by_rank[rank].push_back(parameter.grad().clone());
    }
  });
  return result;
}

void compare_gradients(const Task& task, int ranks) {
  for (const auto dtype : {torch::kFloat, torch::kDouble}) {
    const auto [by_rank, in_pieces, whole] = compute(task, ranks, dtype);
    const double limit = dtype == torch::kDouble ? 1e-12 : 1e-6;
    double largest = 0;
    for (size_t i = 0; i < whole.size(); ++i) {
      for (const auto& gradients : by_rank) {
        EXPECT_TRUE(gradients[i].equal(in_pieces[i])) << "parameter " << i << ", " << ranks;
      }
      const double relative = relative_difference({by_rank[0][i]}, {whole[i]});
      EXPECT_LE(relative, limit) << "parameter " << i << ", " << ranks << " ranks";
      largest = std::max(largest, relative);
    }
    std::printf("%d ranks %s: largest difference %.2e\n", ranks, c10::toString(dtype), largest);
  }
}

TEST(DdpProof, MlpGradientsAreThoseOfOneProcess) {
  for (const int ranks : {2, 4}) compare_gradients(mlp_task(), ranks);
}

TEST(DdpProof, Resnet18GradientsAreThoseOfOneProcess) {
  for (const int ranks : {2, 4}) compare_gradients(resnet_task("resnet18", 8), ranks);
}

TEST(DdpProof, Resnet50GradientsAreThoseOfOneProcess) {
  for (const int ranks : {2, 4}) compare_gradients(resnet_task("resnet50", 16), ranks);
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

/// After `steps`, between the ranks and between two runs.
void expect_equal_bits(const Task& task, int ranks, int steps, double lr) {
  const auto first = train(task, ranks, steps, lr);
  const auto second = train(task, ranks, steps, lr);
  for (size_t i = 0; i < first[0].size(); ++i) {
    ASSERT_TRUE(first[0][i].isfinite().all().item<bool>());
    for (const auto& rank : first) EXPECT_TRUE(rank[i].equal(first[0][i])) << "between ranks";
    for (const auto& rank : second) EXPECT_TRUE(rank[i].equal(first[0][i])) << "between runs";
  }
}

TEST(DdpProof, MlpWeightsAreEqualBitForBitAfter50Steps) {
  expect_equal_bits(mlp_task(), 2, 50, 0.01);
  expect_equal_bits(mlp_task(), 4, 50, 0.01);
}

// A step of a ResNet costs a hundred times as much.
TEST(DdpProof, Resnet18WeightsAreEqualBitForBit) {
  expect_equal_bits(resnet_task("resnet18", 8), 2, 20, 0.01);
}

/// Between ranks only: a second run would cost as much again.
void expect_ranks_agree(const Task& task, int ranks, int steps) {
  const auto states = train(task, ranks, steps, 0.01);
  for (size_t i = 0; i < states[0].size(); ++i) {
    ASSERT_TRUE(states[0][i].isfinite().all().item<bool>());
    for (const auto& rank : states) EXPECT_TRUE(rank[i].equal(states[0][i])) << "parameter " << i;
  }
}

TEST(DdpProof, Resnet18WeightsAreEqualBitForBitOn4Ranks) {
  expect_ranks_agree(resnet_task("resnet18", 8), 4, 20);
}

TEST(DdpProof, Resnet50WeightsAreEqualBitForBit) {
  expect_equal_bits(resnet_task("resnet50", 8), 2, 10, 0.001);
}

}  // namespace
}  // namespace lockstep
