#pragma once
// Shared by the networks of the zoo. Parts are numbered as in torchvision, where layers without
// parameters have numbers, too.

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <memory>
#include <string>
#include <vector>

#include "lockstep/models/model.h"

namespace lockstep::inline internal {

enum class Activation { kNone, kRelu, kHardswish, kSilu };

/// In place.
at::Tensor activate(Activation activation, at::Tensor x);

/// Parts that run one after the other: "0", "1", ..., or under names of their own.
class Chain final : public Model {
 public:
  void add(std::shared_ptr<Model> part) { add(std::to_string(parts_.size()), std::move(part)); }
  void add(const std::string& name, std::shared_ptr<Model> part) {
    parts_.push_back(register_module(name, std::move(part)));
  }
  at::Tensor forward(at::Tensor x) override {
    for (auto& part : parts_) x = part->forward(std::move(x));
    return x;
  }

 private:
  std::vector<std::shared_ptr<Model>> parts_;
};

struct ConvNormOptions {
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t groups = 1;
  Activation activation = Activation::kNone;
  double eps = 1e-5;
  double momentum = 0.1;
};

/// Convolution "0" without bias, batch norm "1", activation. (N, in, H, W) -> (N, out, H / stride,
/// W / stride), rounded up for odd kernels.
class ConvNorm final : public Model {
 public:
  ConvNorm(int64_t in, int64_t out, const ConvNormOptions& options);
  at::Tensor forward(at::Tensor x) override;

 private:
  Activation activation_;
  torch::nn::Conv2d conv_;
  torch::nn::BatchNorm2d norm_;
};

/// How squeeze and excitation bounds the factors of the channels.
enum class Gate { kSigmoid, kHardsigmoid };

/// x * gate(fc2(activation(fc1(mean of x)))). (N, C, H, W) -> the same.
/// Source: Hu et al., "Squeeze-and-Excitation Networks", CVPR 2018.
class SqueezeExcitation final : public Model {
 public:
  SqueezeExcitation(int64_t channels, int64_t squeezed, Activation activation, Gate gate);
  at::Tensor forward(at::Tensor x) override;

 private:
  Activation activation_;
  Gate gate_;
  torch::nn::Conv2d fc1_;
  torch::nn::Conv2d fc2_;
};

/// Mean over rows and columns: (N, C, H, W) -> (N, C).
at::Tensor mean_of_pixels(const at::Tensor& x);

/// With probability `share` a row of the batch becomes 0; the others are divided by 1 - share. In
/// evaluation x itself. Source: Huang et al., "Deep Networks with Stochastic Depth", ECCV 2016.
at::Tensor drop_rows(const at::Tensor& x, double share, bool training);

/// Rounds channels * factor to a multiple of 8 that is at least 0.9 times as large, as the authors
/// of MobileNet do.
int64_t rounded_channels(double channels);

/// Convolutions: normal, Kaiming, fan-out, biases 0. Batch norms: 1 and 0.
void init_convolutions(torch::nn::Module& net);

/// Normal with deviation `sigma`, drawn again if beyond 2, as trunc_normal_ of PyTorch 2.14. In
/// place. PyTorch 1.13's makes one weight in some millions 2, a hundred times the deviation.
void cut_normal_(const at::Tensor& values, double sigma);

}  // namespace lockstep::inline internal
