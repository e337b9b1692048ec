// Traces of networks. compare.py of bench/peers/torchvision computes the files with onnxruntime.
#include "lockstep/onnx/save_onnx.h"

#include <ATen/ops/conv1d.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <functional>

#include "lockstep/base/file.h"
#include "tests/onnx/wire.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"
#include "tests/support/zoo_network.h"

namespace lockstep {
namespace {

struct SmallConvNet final : Model {
  torch::nn::Conv2d conv = register_module("conv", torch::nn::Conv2d(3, 8, 3));
  torch::nn::BatchNorm2d norm = register_module("norm", torch::nn::BatchNorm2d(8));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(8, 2));
  at::Tensor forward(at::Tensor x) override {
    x = at::max_pool2d(norm->forward(conv->forward(x)).relu_(), 2);
    return last->forward(x.mean({2, 3}));
  }
};

std::string exported(Model& network, const std::vector<int64_t>& sizes) {
  const TempFolder dir;
  save_onnx(dir / "x.onnx", network, sizes);
  return read_file(dir / "x.onnx");
}

TEST(SaveOnnx, KeepsOrderAndNames) {
  SmallConvNet network;
  network.train();
  const std::string file = exported(network, {3, 8, 8});
  auto ops = ops_of(file);
  std::erase(ops, "Transpose");  // of the last weight, with libtorch 1.13
  EXPECT_EQ(ops, (std::vector<std::string>{"Conv", "BatchNormalization", "Relu", "MaxPool",
                                           "ReduceMean", "Gemm", "Identity"}));
  EXPECT_EQ(initializers_of(file),
            (std::vector<std::string>{"conv.weight", "conv.bias", "norm.weight", "norm.bias",
                                      "norm.running_mean", "norm.running_var", "last.weight",
                                      "last.bias"}));
  EXPECT_TRUE(network.is_training());
  EXPECT_TRUE(network.last->weight.requires_grad());
}

/// Calls a function of the batch.
struct Function final : Model {
  explicit Function(std::function<at::Tensor(const at::Tensor&)> given) : body(std::move(given)) {}
  std::function<at::Tensor(const at::Tensor&)> body;
  at::Tensor forward(at::Tensor x) override { return body(x); }
};

std::string refusal_of(const std::function<at::Tensor(const at::Tensor&)>& body) {
  Function network(body);
  return error_of([&] { exported(network, {4, 6}); }).what();
}

TEST(SaveOnnx, RefusesWhatWouldBeWrong) {
  EXPECT_TRUE(refusal_of([](const at::Tensor& x) { return at::cumsum(x, 1); })
                  .starts_with("ONNX: the network's operation 'cumsum' is not one that is written "
                               "(these are: _convolution, "));
  EXPECT_EQ(refusal_of([](const at::Tensor& x) {
              return x.reshape({4, x.size(0), 6});
            }),
            "ONNX: the network's operation 'reshape' would fix the size of the batch");
  EXPECT_EQ(refusal_of([](const at::Tensor& x) { return x.mul(2).add(x, 3); }),
            "ONNX: the network's operation 'add' has a factor, or a way of rounding");
  const at::Tensor kernel = at::ones({2, 4, 3});
  Function one_dimensional([=](const at::Tensor& x) { return at::conv1d(x, kernel); });
  EXPECT_STREQ(error_of([&] {
                 exported(one_dimensional, {4, 6});
               }).what(),
               "ONNX: the network's operation '_convolution' has a kernel that is not "
               "two-dimensional");
}

TEST(SaveOnnx, ASizeOfTheNetworkMayEqualTheRowsThatAreTraced) {
  for (const int64_t size : {7, 11}) {
    Function windows([=](const at::Tensor& x) { return x.reshape({-1, size, 2}).mul(2); });
    const auto ops = ops_of(exported(windows, {2, size}));
    EXPECT_EQ(ops, (std::vector<std::string>{"Reshape", "Mul", "Identity"})) << size;
  }
}

TEST(SaveOnnx, TakesEveryNetworkOfTheZoo) {
  for (const char* name : {"resnet18", "resnext50_32x4d", "mobilenet_v3_small", "efficientnet_b0",
                           "convnext_tiny", "vit_s_16"}) {
    const ZooNetwork& network = zoo_network(name);
    ZooSettings settings = network.settings;
    if (settings.image_size) settings.image_size = 32;
    const auto model = make_network(network, settings, 10);
    const auto names = initializers_of(exported(*model, {3, 32, 32}));
    for (const auto& parameter : model->named_parameters()) {
      EXPECT_EQ(std::count(names.begin(), names.end(), parameter.key()), 1)
          << name << " " << parameter.key();
    }
  }
}

}  // namespace
}  // namespace lockstep
