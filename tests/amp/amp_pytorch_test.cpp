// The same steps as PyTorch with its autocast, and with a cast module; see amp_reference.py.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <cstdlib>

#include "lockstep/amp/gradients.h"
#include "lockstep/amp/master_weights.h"
#include "lockstep/autocast.h"
#include "lockstep/base/file.h"
#include "tests/support/temp_folder.h"
#include "tests/support/torch_script.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using torch::Tensor;

void write_floats(const std::string& path, const Tensor& tensor) {
  const Tensor flat = tensor.detach().contiguous();
  write_file_atomically(path,
                        std::string(static_cast<const char*>(flat.data_ptr()), flat.nbytes()));
}

Tensor read_floats(const std::string& path) {
  std::string bytes = read_file(path);
  return torch::from_blob(bytes.data(), {static_cast<int64_t>(bytes.size() / 4)}, torch::kFloat)
      .clone();
}

Tensor flat(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> parts;
  for (const auto& tensor : tensors) {
    if (tensor.dim() > 0) parts.push_back(tensor.detach().to(at::kFloat).flatten());
  }
  return torch::cat(parts);
}

nn::Sequential make_conv_net() {
  torch::manual_seed(3);
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(3, 8, 3).padding(1)), nn::BatchNorm2d(8),
                        nn::ReLU(),
                        nn::Conv2d(nn::Conv2dOptions(8, 16, 3).stride(2).padding(1).bias(false)),
                        nn::BatchNorm2d(16), nn::ReLU(), nn::Flatten(), nn::Linear(256, 10));
}

Tensor input(int step) {
  return (torch::arange(6 * 3 * 64) * (0.37 + step)).sin().reshape({6, 3, 8, 8});
}

/// Weights, then statistics, after three steps with a loss scale of 1024.
Tensor three_steps(AmpLevel level) {
  auto net = make_conv_net();
  MasterWeights masters(*net, level, at::kBFloat16);
  const auto weights = masters.module().parameters();
  torch::optim::SGD optimizer(weights, torch::optim::SGDOptions(0.1).momentum(0.9));
  for (int step = 0; step < 3; ++step) {
    for (auto& parameter : net->parameters()) parameter.mutable_grad().reset();
    const auto output =
        forward_at(level, input(step), [&](const Tensor& images) { return net->forward(images); });
    const auto labels = torch::arange(6) * 7 % 10;
    (nn::functional::cross_entropy(output, labels) * 1024).backward();
    masters.take_gradients();
    unscale(gradients_of(weights), 1024);
    optimizer.step();
    masters.publish();
  }
  masters.collect_buffers();
  auto state = weights;
  const auto buffers = masters.module().buffers();
  state.insert(state.end(), buffers.begin(), buffers.end());
  return flat(state);
}

TEST(AmpAndPyTorch, ThreeStepsAreTheSame) {
  at::set_num_threads(1);
  const TempFolder folder;
  const Tensor initial = flat(make_conv_net()->parameters());
  write_floats(folder / "initial", initial);
  for (int step = 0; step < 3; ++step) {
    write_floats(folder / ("input" + std::to_string(step)), input(step));
  }
  const std::string log = folder / "log";
  const std::string command =
      torch_script("tests/amp/amp_reference.py ") + folder.path().string() + " >" + log + " 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0) << read_file(log);
  const Tensor exact = three_steps(AmpLevel::kO0);
  for (const auto level : {AmpLevel::kO1, AmpLevel::kO2}) {
    const Tensor ours = three_steps(level);
    const Tensor theirs = read_floats(folder / to_string(level));
    ASSERT_EQ(ours.sizes(), theirs.sizes());
    const auto difference = [&](const Tensor& other) {
      return (ours - other).abs().max().item<float>();
    };
    std::printf("%s: worst difference %.2e, from float32 %.2e\n", to_string(level).c_str(),
                difference(theirs), difference(exact));
    EXPECT_LE(difference(theirs), 1e-6) << to_string(level);
    EXPECT_GT(difference(exact), 1e-4) << "bfloat16 must show";
    EXPECT_GT((initial - ours.narrow(0, 0, initial.numel())).abs().max().item<float>(), 1e-2);
  }
}

}  // namespace
}  // namespace lockstep
