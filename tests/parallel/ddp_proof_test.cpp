// What data parallel training is for: P ranks compute what one process would.
//
// Gradients are compared parameter by parameter: |g_P - g_1| / |g_1| with Euclidean norms, where
// g_1 is the gradient of the mean loss over the global batch in one process.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <torch/autograd.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <filesystem>
#include <functional>
#include <mutex>

#include "lockstep/base/env.h"
#include "lockstep/base/file.h"
#include "lockstep/models/build_model.h"
#include "lockstep/parallel/distributed_data_parallel.h"
#include "tests/support/ranks.h"

namespace lockstep {
namespace {

using testing::run_rank_threads;
using torch::Tensor;

class Wrapped final : public Model {
 public:
  explicit Wrapped(torch::nn::Sequential net) : net_(register_module("net", net)) {}
  Tensor forward(Tensor input) override { return net_->forward(std::move(input)); }

 private:
  torch::nn::Sequential net_;
};

struct Task {
  std::function<std::shared_ptr<Model>()> make;
  std::vector<int64_t> sample;  ///< Shape of one input.
};

Task mlp_task() {
  return {[] {
            return std::make_shared<Wrapped>(torch::nn::Sequential(
                torch::nn::Linear(600, 512), torch::nn::ReLU(), torch::nn::Linear(512, 300),
                torch::nn::Tanh(), torch::nn::Linear(300, 10)));
          },
          {600}};
}

Task resnet_task(const std::string& name, int64_t side) {
  return {
      [name] { return build_model({.backbone = name, .stem = Stem::kCifar, .num_classes = 10}); },
      {3, side, side}};
}

/// One seed, one net: the generator belongs to the process and the ranks are its threads.
std::shared_ptr<Model> make_seeded(const Task& task, uint64_t seed, torch::Dtype dtype) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  torch::manual_seed(seed);
  auto net = task.make();
  net->to(dtype);
  return net;
}

/// `count` inputs that are the same in every thread and process.
Tensor inputs(const Task& task, int64_t count, int64_t step, torch::Dtype dtype) {
  std::vector<int64_t> shape = {count};
  shape.insert(shape.end(), task.sample.begin(), task.sample.end());
  const int64_t numel = c10::multiply_integers(shape);
  const Tensor at = torch::arange(numel, torch::kDouble) + 1000.0 * static_cast<double>(step);
  return (at * 12.9898).sin().mul(2).view(shape).to(dtype);
}

Tensor labels(int64_t count) {
  return torch::arange(count, torch::kLong).mul(7).remainder(10);
}

Tensor loss_of(const Tensor& logits, const Tensor& target) {
  return torch::nn::functional::cross_entropy(logits, target);
}

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
std::vector<std::vector<Tensor>> train(const Task& task, int ranks, int steps, int64_t batch) {
  std::vector<std::vector<Tensor>> states(static_cast<size_t>(ranks));
  run_rank_threads(ranks, [&](World world) {
    at::set_num_threads(1);
    auto net = make_seeded(task, static_cast<uint64_t>(world.rank), torch::kFloat);
    auto model = DistributedDataParallel(net, ProcessGroup::create(world));
    torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
    for (int step = 0; step < steps; ++step) {
      model.zero_grad();
      const Tensor x = inputs(task, batch, step * world.size + world.rank, torch::kFloat);
      loss_of(model.forward(x), labels(batch)).backward();
      optimizer.step();
    }
    auto& state = states[static_cast<size_t>(world.rank)];
    for (const auto& parameter : net->parameters()) state.push_back(parameter.detach());
  });
  return states;
}

void expect_equal_bits(const Task& task, int ranks) {
  const auto first = train(task, ranks, 50, 2);
  const auto second = train(task, ranks, 50, 2);
  for (size_t i = 0; i < first[0].size(); ++i) {
    ASSERT_TRUE(first[0][i].isfinite().all().item<bool>());
    for (const auto& rank : first) EXPECT_TRUE(rank[i].equal(first[0][i])) << "between ranks";
    for (const auto& rank : second) EXPECT_TRUE(rank[i].equal(first[0][i])) << "between runs";
  }
}

TEST(DdpProof, MlpWeightsAreEqualBitForBitAfter50Steps) {
  expect_equal_bits(mlp_task(), 2);
  expect_equal_bits(mlp_task(), 4);
}

TEST(DdpProof, Resnet18WeightsAreEqualBitForBitAfter50Steps) {
  expect_equal_bits(resnet_task("resnet18", 8), 2);
}

/// Between ranks only: a second run would cost as much again.
void expect_ranks_agree(const Task& task, int ranks, int steps) {
  const auto states = train(task, ranks, steps, 2);
  for (size_t i = 0; i < states[0].size(); ++i) {
    ASSERT_TRUE(states[0][i].isfinite().all().item<bool>());
    for (const auto& rank : states) EXPECT_TRUE(rank[i].equal(states[0][i])) << "parameter " << i;
  }
}

TEST(DdpProof, Resnet18WeightsAreEqualBitForBitOn4RanksAfter50Steps) {
  expect_ranks_agree(resnet_task("resnet18", 8), 4, 50);
}

TEST(DdpProof, Resnet50WeightsAreEqualBitForBitAfter10Steps) {
  expect_ranks_agree(resnet_task("resnet50", 8), 2, 10);
}

/// A file that both sides read as float32, one tensor after the other.
void write_floats(const std::string& path, const std::vector<Tensor>& tensors) {
  std::string bytes;
  for (const Tensor& tensor : tensors) {
    const Tensor flat = tensor.detach().to(torch::kFloat).contiguous();
    bytes.append(static_cast<const char*>(flat.data_ptr()), flat.nbytes());
  }
  write_file_atomically(path, bytes);
}

Tensor read_floats(const std::string& path) {
  const std::string bytes = read_file(path);
  return torch::from_blob(const_cast<char*>(bytes.data()), {static_cast<int64_t>(bytes.size() / 4)},
                          torch::kFloat)
      .clone();
}

Task reference_task() {
  namespace nn = torch::nn;
  return {[] {
            return std::make_shared<Wrapped>(nn::Sequential(
                nn::Conv2d(nn::Conv2dOptions(3, 8, 3).padding(1)), nn::BatchNorm2d(8), nn::ReLU(),
                nn::Flatten(), nn::Linear(512, 600), nn::Tanh(), nn::Linear(600, 10)));
          },
          {3, 8, 8}};
}

class TempFolder {
 public:
  TempFolder() { EXPECT_NE(::mkdtemp(path_.data()), nullptr); }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = std::filesystem::temp_directory_path() / "lockstep-ddp-XXXXXX";
};

/// Parameters, then running means and variances, flat. The same step as in ddp_reference.py.
Tensor three_steps(const TempFolder& folder) {
  Tensor state;
  run_rank_threads(2, [&](World world) {
    at::set_num_threads(1);
    auto net = make_seeded(reference_task(), static_cast<uint64_t>(world.rank), torch::kFloat);
    auto model = DistributedDataParallel(net, ProcessGroup::create(world));
    if (world.rank == 0) write_floats(folder / "initial", model.parameters());
    torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    for (int step = 0; step < 3; ++step) {
      const Tensor x = inputs(reference_task(), 6, 2 * step + world.rank, torch::kFloat);
      write_floats(folder / ("input" + std::to_string(2 * step + world.rank)), {x});
      optimizer.zero_grad();
      loss_of(model.forward(x), labels(6)).backward();
      optimizer.step();
    }
    if (world.rank != 0) return;
    std::vector<Tensor> flat;
    for (const auto& parameter : net->parameters()) flat.push_back(parameter.detach().flatten());
    for (const auto& buffer : net->named_buffers()) {
      if (buffer.value().dim() > 0) flat.push_back(buffer.value().flatten());
    }
    state = torch::cat(flat);
  });
  return state;
}

TEST(DdpProof, ThreeStepsAreThoseOfPyTorchsOwn) {
  const TempFolder folder;
  const Tensor ours = three_steps(folder);
  const std::string command = "/usr/bin/python3 -W ignore " + env_or("LOCKSTEP_SOURCE_DIR", ".") +
                              "/tests/parallel/ddp_reference.py " + folder.path() + " >" +
                              (folder / "log") + " 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0) << read_file(folder / "log");
  const Tensor theirs = read_floats(folder / "final");
  ASSERT_EQ(ours.sizes(), theirs.sizes());
  const Tensor initial = read_floats(folder / "initial");
  EXPECT_GT((initial - ours.slice(0, 0, initial.numel())).abs().max().item<float>(), 1e-2);
  EXPECT_LE((ours - theirs).abs().max().item<float>(), 1e-5);
}

}  // namespace
}  // namespace lockstep
