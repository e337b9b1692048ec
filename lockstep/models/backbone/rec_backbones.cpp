#include "lockstep/models/backbone/rec_backbones.h"

#include <ATen/ops/relu.h>
#include <fmt/format.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>

#include <array>

#include "lockstep/models/layers.h"

namespace lockstep::inline internal {
namespace {

namespace nn = torch::nn;

/// Convolution and batch norm. A mean in front of it implements the stride `pooled`.
class RecConvNorm final : public Model {
 public:
  RecConvNorm(int64_t in, int64_t out, int64_t kernel, Pair stride, Pair pooled = {1, 1})
      : pooled_(pooled),
        conv_(register_module("conv", nn::Conv2d(nn::Conv2dOptions(in, out, kernel)
                                                     .stride({stride[0], stride[1]})
                                                     .padding(kernel / 2)
                                                     .bias(false)))),
        norm_(register_module("norm", nn::BatchNorm2d(out))) {}

  at::Tensor forward(at::Tensor x) override {
    if (pooled_ != Pair{1, 1}) x = avg_pool_same(x, pooled_, pooled_);
    return norm_->forward(conv_->forward(x));
  }

 private:
  Pair pooled_;
  nn::Conv2d conv_;
  nn::BatchNorm2d norm_;
};

/// relu(branch(x) + shortcut(x)); the shortcut is x itself except in a stage's first block.
class RecBlock final : public Model {
 public:
  RecBlock(int64_t in, int64_t out, Pair stride, bool projects)
      : conv0_(register_module("conv0", std::make_shared<RecConvNorm>(in, out, 3, stride))),
        conv1_(register_module("conv1", std::make_shared<RecConvNorm>(out, out, 3, Pair{1, 1}))) {
    if (!projects) return;
    short_ =
        register_module("short", std::make_shared<RecConvNorm>(in, out, 1, Pair{1, 1}, stride));
  }

  at::Tensor forward(at::Tensor x) override {
    const at::Tensor y = conv1_->forward(conv0_->forward(x).relu_());
    return (short_ ? short_->forward(x) : x).add(y).relu_();
  }

 private:
  std::shared_ptr<RecConvNorm> conv0_;
  std::shared_ptr<RecConvNorm> conv1_;
  std::shared_ptr<RecConvNorm> short_;
};

constexpr std::array<int, 4> kBlocks = {3, 4, 6, 3};

class RecResNet final : public Backbone {
 public:
  RecResNet()
      : conv1_1_(register_module("conv1_1", stem(3, 32))),
        conv1_2_(register_module("conv1_2", stem(32, 32))),
        conv1_3_(register_module("conv1_3", stem(32, 64))),
        blocks_(register_module("block_list", nn::Sequential())) {
    int64_t channels = 64;
    for (size_t stage = 0; stage < kBlocks.size(); ++stage) {
      const int64_t out = int64_t{64} << stage;
      for (int i = 0; i < kBlocks[stage]; ++i) {
        const Pair stride = {i == 0 && stage > 0 ? 2 : 1, 1};
        blocks_->push_back(std::make_shared<RecBlock>(channels, out, stride, i == 0));
        channels = out;
      }
    }
  }

  Tensors features(at::Tensor x) override {
    for (const auto& layer : {conv1_1_, conv1_2_, conv1_3_}) x = layer->forward(x).relu_();
    x = blocks_->forward(max_pool_same(x, {3, 3}, {2, 2}));
    return {max_pool_same(x, {2, 2}, {2, 2})};
  }

  std::vector<int64_t> feature_channels() const override { return {512}; }

 private:
  static std::shared_ptr<RecConvNorm> stem(int64_t in, int64_t out) {
    return std::make_shared<RecConvNorm>(in, out, 3, Pair{1, 1});
  }

  std::shared_ptr<RecConvNorm> conv1_1_;
  std::shared_ptr<RecConvNorm> conv1_2_;
  std::shared_ptr<RecConvNorm> conv1_3_;
  nn::Sequential blocks_;
};

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

class RecVgg final : public Backbone {
 public:
  RecVgg() {
    int64_t channels = 3;
    for (size_t i = 0; i < layers_.size(); ++i) {
      layers_[i] = register_module(fmt::format("conv{}", i + 1),
                                   std::make_shared<VggConv>(channels, kVggLayers[i]));
      channels = kVggLayers[i].out;
    }
  }

  Tensors features(at::Tensor x) override {
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

std::shared_ptr<Backbone> make_rec_resnet34() {
  return std::make_shared<RecResNet>();
}

std::shared_ptr<Backbone> make_rec_vgg7() {
  return std::make_shared<RecVgg>();
}

}  // namespace lockstep::inline internal
