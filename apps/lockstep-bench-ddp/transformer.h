#pragma once
// The transformer of the programs that measure training steps; bench/peers/ddp_step.py has the
// same. Base is a torch::nn::Module with a virtual `at::Tensor forward(at::Tensor)`: programs of
// the core alone have no Model.

#include <ATen/ops/gelu.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::bench {

/// A layer of a transformer, normalised before each half. (N, T, C) -> (N, T, C). Attention is
/// written out: libtorch 1.13 has no function for it, and each version then does the same work.
template <class Base>
class TransformerLayer final : public Base {
 public:
  TransformerLayer(int64_t width, int64_t heads)
      : heads_(heads),
        norm1_(this->register_module("norm1", torch::nn::LayerNorm(norm_options(width)))),
        norm2_(this->register_module("norm2", torch::nn::LayerNorm(norm_options(width)))),
        qkv_(this->register_module("qkv", torch::nn::Linear(width, 3 * width))),
        projection_(this->register_module("projection", torch::nn::Linear(width, width))),
        up_(this->register_module("up", torch::nn::Linear(width, 4 * width))),
        down_(this->register_module("down", torch::nn::Linear(4 * width, width))) {}

  at::Tensor forward(at::Tensor input) override {
    const at::Tensor middle = input + attention(norm1_->forward(input));
    return middle + down_->forward(at::gelu(up_->forward(norm2_->forward(middle))));
  }

 private:
  static torch::nn::LayerNormOptions norm_options(int64_t width) {
    return torch::nn::LayerNormOptions({width});
  }
  at::Tensor attention(const at::Tensor& input) {
    const int64_t batch = input.size(0), tokens = input.size(1), width = input.size(2);
    const auto parts = qkv_->forward(input)
                           .view({batch, tokens, 3, heads_, width / heads_})
                           .permute({2, 0, 3, 1, 4})
                           .unbind(0);
    const double scale = 1 / std::sqrt(static_cast<double>(width / heads_));
    const at::Tensor weights =
        at::softmax(at::matmul(parts[0], parts[1].transpose(-2, -1)) * scale, -1);
    const at::Tensor mixed = at::matmul(weights, parts[2]);
    return projection_->forward(mixed.transpose(1, 2).reshape({batch, tokens, width}));
  }

  const int64_t heads_;
  torch::nn::LayerNorm norm1_, norm2_;
  torch::nn::Linear qkv_, projection_, up_, down_;
};

/// Layers, the mean over the tokens, and ten classes. (N, T, C) -> (N, 10).
template <class Base>
class Transformer final : public Base {
 public:
  Transformer(int layers, int64_t width, int64_t heads) : head_(width, 10) {
    for (int i = 0; i < layers; ++i) {
      layers_.push_back(this->register_module(
          "layer" + std::to_string(i), std::make_shared<TransformerLayer<Base>>(width, heads)));
    }
    this->register_module("head", head_);
  }
  at::Tensor forward(at::Tensor input) override {
    for (const auto& layer : layers_) input = layer->forward(input);
    return head_->forward(input.mean(1));
  }

 private:
  std::vector<std::shared_ptr<TransformerLayer<Base>>> layers_;
  torch::nn::Linear head_;
};

}  // namespace lockstep::bench
