#include "apps/lockstep-bench-ddp/models.h"

#include <ATen/ops/gelu.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <cmath>

#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/models/build_model.h"

namespace lockstep::bench {
namespace {

class Mlp final : public Model {
 public:
  Mlp(int64_t width, int layers) {
    for (int i = 0; i < layers; ++i) {
      net_->push_back(torch::nn::Linear(width, width));
      net_->push_back(torch::nn::ReLU());
    }
    net_->push_back(torch::nn::Linear(width, 10));
    register_module("net", net_);
  }
  at::Tensor forward(at::Tensor input) override { return net_->forward(std::move(input)); }

 private:
  torch::nn::Sequential net_;
};

/// A layer of a transformer, normalised before each half. (N, T, C) -> (N, T, C). Attention is
/// written out: libtorch 1.13 has no function for it, and each version then does the same work.
class TransformerLayer final : public Model {
 public:
  TransformerLayer(int64_t width, int64_t heads)
      : heads_(heads),
        norm1_(register_module("norm1", torch::nn::LayerNorm(norm_options(width)))),
        norm2_(register_module("norm2", torch::nn::LayerNorm(norm_options(width)))),
        qkv_(register_module("qkv", torch::nn::Linear(width, 3 * width))),
        projection_(register_module("projection", torch::nn::Linear(width, width))),
        up_(register_module("up", torch::nn::Linear(width, 4 * width))),
        down_(register_module("down", torch::nn::Linear(4 * width, width))) {}

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
class Transformer final : public Model {
 public:
  Transformer(int layers, int64_t width, int64_t heads) : head_(width, 10) {
    for (int i = 0; i < layers; ++i) {
      layers_.push_back(register_module(fmt::format("layer{}", i),
                                        std::make_shared<TransformerLayer>(width, heads)));
    }
    register_module("head", head_);
  }
  at::Tensor forward(at::Tensor input) override {
    for (const auto& layer : layers_) input = layer->forward(input);
    return head_->forward(input.mean(1));
  }

 private:
  std::vector<std::shared_ptr<TransformerLayer>> layers_;
  torch::nn::Linear head_;
};

}  // namespace

const std::vector<std::string>& model_names() {
  static const std::vector<std::string> names = {"resnet50", "mlp3m", "mlp50m", "transformer25m"};
  return names;
}

BenchModel make_model(const std::string& name) {
  if (name == "resnet50") {
    const ModelSpec spec{.backbone = {.name = "resnet50", .stem = Stem::kCifar},
                         .head = {.num_classes = 10}};
    return {build_model(spec), {32, 3, 32, 32}, 6, 2};
  }
  if (name == "mlp3m") return {std::make_shared<Mlp>(1024, 3), {64, 1024}, 150, 20};
  if (name == "mlp50m") return {std::make_shared<Mlp>(4096, 3), {16, 4096}, 12, 3};
  if (name == "transformer25m") {
    return {std::make_shared<Transformer>(12, 416, 8), {8, 32, 416}, 10, 2};
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("unknown model '{}'{}; known: {}", name,
                          did_you_mean(name, model_names()), fmt::join(model_names(), ", ")));
}

}  // namespace lockstep::bench
