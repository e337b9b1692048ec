// Large gradients of usual networks are hardly copied: autograd leaves each in the memory that is
// reduced. That rests on libtorch's insides, so it must hold with each version. Ranks are threads.
#include <ATen/ops/gelu.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/softmax.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/modules/rnn.h>
#include <torch/optim/adam.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/distributed_data_parallel.h"
#include "lockstep/models/build/build_model.h"
#include "tests/support/ranks.h"

namespace lockstep {
namespace {

using at::Tensor;
namespace nn = torch::nn;

struct Mlp final : Model {
  Tensor forward(Tensor input) override { return net->forward(std::move(input)); }
  nn::Sequential net = register_module(
      "net", nn::Sequential(nn::Linear(512, 1024), nn::ReLU(), nn::Linear(1024, 512)));
};

struct Attention final : Model {
  Tensor forward(Tensor input) override {
    const auto parts = qkv(norm(input)).chunk(3, -1);
    const Tensor weights = at::softmax(at::matmul(parts[0], parts[1].transpose(-2, -1)), -1);
    return input + down(at::gelu(up(at::matmul(weights, parts[2]))));
  }
  nn::LayerNorm norm = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({512})));
  nn::Linear qkv = register_module("qkv", nn::Linear(512, 3 * 512));
  nn::Linear up = register_module("up", nn::Linear(512, 1024));
  nn::Linear down = register_module("down", nn::Linear(1024, 512));
};

struct Words final : Model {
  Tensor forward(Tensor input) override {
    const Tensor numbers = (input.select(-1, 0) * 4096).to(at::kLong);
    return std::get<0>(memory->forward(words(numbers)));
  }
  nn::Embedding words = register_module("words", nn::Embedding(4096, 512));
  nn::LSTM memory = register_module("memory", nn::LSTM(512, 512));
};

struct Case {
  std::string name;
  std::function<std::shared_ptr<Model>()> make;
  std::vector<int64_t> input;
  /// Gradients that are copied, as with libtorch 1.13: the recurrent weight of an LSTM, which is a
  /// sum over time, and in ResNet-18 the convolutions of the first blocks of stages 3 and 4.
  int most_copies;
};

std::vector<Case> cases() {
  const auto resnet = [] {
    return build_model(
        {.backbone = {.name = "resnet18", .stem = Stem::kCifar}, .head = {.num_classes = 10}});
  };
  return {{"mlp", [] { return std::make_shared<Mlp>(); }, {8, 512}, 0},
          {"attention", [] { return std::make_shared<Attention>(); }, {2, 8, 512}, 0},
          {"words", [] { return std::make_shared<Words>(); }, {6, 2, 512}, 1},
          {"resnet18", resnet, {2, 3, 32, 32}, 4}};
}

TEST(ZeroCopy, LeavesLargeGradientsOfUsualNetworksInPlace) {
  for (const Case& network : cases()) {
    testing::run_rank_threads(2, [&network](World world) {
      const auto net = network.make();
      DistributedDataParallel<std::shared_ptr<Model>> ddp(net, ProcessGroup::create(world));
      torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(1e-3));
      for (int step = 0; step < 4; ++step) {
        ddp.zero_grad();
        ddp.forward(at::rand(network.input)).square().mean().backward();
        EXPECT_LE(ddp.timings().copied, network.most_copies) << network.name << ", step " << step;
        optimizer.step();
      }
    });
  }
}

}  // namespace
}  // namespace lockstep
