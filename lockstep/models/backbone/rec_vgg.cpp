#include "lockstep/models/backbone/rec_vgg.h"

#include <ATen/ops/relu.h>
#include <fmt/format.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>

#include <array>

#include "lockstep/models/layers.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;

/// One of the seven convolutions, and its pooling ({1, 1}: none).
struct VggLayer {
  int64_t out;
  int64_t kernel;
  bool norm;
  Pair pool;
};

constexpr std::array<VggLayer, 7> kVggLayers = {{{64, 3, false, {2, 2}},
                                                 {128, 3, false, {2, 2}},
                                                 {256, 3, true, {1, 1}},
                                                 {256, 3, false, {2, 1}},
                                                 {512, 3, true, {1, 1}},
                                                 {512, 3, false, {2, 1}},
                                                 {512, 2, true, {1, 1}}}};

class VggConv final : public Model {
 public:
  VggConv(int64_t in, const VggLayer& layer)
      : conv_(register_module("conv", nn::Conv2d(nn::Conv2dOptions(in, layer.out, layer.kernel)
                                                     .padding(layer.kernel == 3 ? 1 : 0)))) {
    truncated_normal_(conv_->weight, 0.02);
    truncated_normal_(conv_->bias, 0.01);
    if (!layer.norm) return;
    bn_ = register_module("bn", nn::BatchNorm2d(nn::BatchNorm2dOptions(layer.out).eps(1e-4)));
  }

  at::Tensor forward(at::Tensor x) override {
    x = conv_->forward(x);
    return (bn_.is_empty() ? x : bn_->forward(x)).relu_();
  }

 private:
  nn::Conv2d conv_;
  nn::BatchNorm2d bn_{nullptr};
};

class RecVgg final : public FeatureBackbone {
 public:
  RecVgg() {
    int64_t channels = 3;
    for (size_t i = 0; i < layers_.size(); ++i) {
      layers_[i] = register_module(fmt::format("conv{}", i + 1),
                                   std::make_shared<VggConv>(channels, kVggLayers[i]));
      channels = kVggLayers[i].out;
    }
  }

  std::vector<at::Tensor> features(at::Tensor x) override {
    for (size_t i = 0; i < layers_.size(); ++i) {
      x = layers_[i]->forward(x);
      const Pair pool = kVggLayers[i].pool;
      if (pool != Pair{1, 1}) x = max_pool_same(x, pool, pool);
    }
    return {x};
  }

  std::vector<int64_t> feature_channels() const override { return {kVggLayers.back().out}; }

 private:
  std::array<std::shared_ptr<VggConv>, kVggLayers.size()> layers_;
};

}  // namespace

std::shared_ptr<FeatureBackbone> make_rec_vgg7() {
  return std::make_shared<RecVgg>();
}

}  // namespace lockstep
