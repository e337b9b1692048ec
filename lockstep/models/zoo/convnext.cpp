#include "lockstep/models/zoo/families.h"

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/normalization.h>

#include <array>

#include "lockstep/models/zoo/parts.h"

namespace lockstep::inline internal {
namespace {

namespace nn = torch::nn;

struct ConvNextStage {
  int64_t channels;
  int64_t blocks;
};

constexpr std::array<ConvNextStage, 4> kTinyStages = {{{96, 3}, {192, 3}, {384, 9}, {768, 3}}};

nn::LayerNorm channel_norm(int64_t channels) {
  return nn::LayerNorm(nn::LayerNormOptions(std::vector<int64_t>{channels}).eps(1e-6));
}

/// Norm over the channels of each pixel. (N, C, H, W) -> the same.
at::Tensor over_channels(nn::LayerNorm& norm, const at::Tensor& x) {
  return norm->forward(x.permute({0, 2, 3, 1})).permute({0, 3, 1, 2});
}

/// The layers of a block, which torchvision numbers: 0 and 2, 3, 5 in the order of the channels
/// last.
class ConvNextLayers final : public Model {
 public:
  explicit ConvNextLayers(int64_t channels)
      : depthwise_(register_module(
            "0", nn::Conv2d(nn::Conv2dOptions(channels, channels, 7).padding(3).groups(channels)))),
        norm_(register_module("2", channel_norm(channels))),
        widen_(register_module("3", nn::Linear(channels, 4 * channels))),
        narrow_(register_module("5", nn::Linear(4 * channels, channels))) {}

  at::Tensor forward(at::Tensor x) override {
    x = norm_->forward(depthwise_->forward(x).permute({0, 2, 3, 1}));
    return narrow_->forward(at::gelu(widen_->forward(x))).permute({0, 3, 1, 2});
  }

 private:
  nn::Conv2d depthwise_;
  nn::LayerNorm norm_;
  nn::Linear widen_;
  nn::Linear narrow_;
};

class ConvNextBlock final : public Model {
 public:
  ConvNextBlock(int64_t channels, double drops)
      : drops_(drops),
        block_(register_module("block", std::make_shared<ConvNextLayers>(channels))),
        layer_scale_(register_parameter("layer_scale", at::full({channels, 1, 1}, 1e-6))) {}

  at::Tensor forward(at::Tensor x) override {
    return drop_rows(layer_scale_ * block_->forward(x), drops_, is_training()) + x;
  }

 private:
  double drops_;
  std::shared_ptr<Model> block_;
  at::Tensor layer_scale_;
};

/// Convolution "0" of 4x4 patches, norm "1".
class ConvNextStem final : public Model {
 public:
  explicit ConvNextStem(int64_t channels)
      : conv_(register_module("0", nn::Conv2d(nn::Conv2dOptions(3, channels, 4).stride(4)))),
        norm_(register_module("1", channel_norm(channels))) {}
  at::Tensor forward(at::Tensor x) override { return over_channels(norm_, conv_->forward(x)); }

 private:
  nn::Conv2d conv_;
  nn::LayerNorm norm_;
};

/// Norm "0", convolution "1" of 2x2 patches.
class ConvNextDownsample final : public Model {
 public:
  ConvNextDownsample(int64_t in, int64_t out)
      : norm_(register_module("0", channel_norm(in))),
        conv_(register_module("1", nn::Conv2d(nn::Conv2dOptions(in, out, 2).stride(2)))) {}
  at::Tensor forward(at::Tensor x) override { return conv_->forward(over_channels(norm_, x)); }

 private:
  nn::LayerNorm norm_;
  nn::Conv2d conv_;
};

/// Norm "0", linear "2". (N, C, 1, 1) -> (N, K).
class ConvNextClassifier final : public Model {
 public:
  ConvNextClassifier(int64_t channels, int64_t classes)
      : norm_(register_module("0", channel_norm(channels))),
        last_(register_module("2", nn::Linear(channels, classes))) {}
  at::Tensor forward(at::Tensor x) override {
    return last_->forward(over_channels(norm_, x).flatten(1));
  }

 private:
  nn::LayerNorm norm_;
  nn::Linear last_;
};

class ConvNext final : public Model {
 public:
  ConvNext(int64_t classes, double stochastic_depth)
      : features_(register_module("features", std::make_shared<Chain>())) {
    int64_t channels = kTinyStages[0].channels, total = 0, block = 0;
    for (const ConvNextStage& stage : kTinyStages) total += stage.blocks;
    features_->add(std::make_shared<ConvNextStem>(channels));
    for (const ConvNextStage& stage : kTinyStages) {
      if (stage.channels != channels) {
        features_->add(std::make_shared<ConvNextDownsample>(channels, stage.channels));
        channels = stage.channels;
      }
      auto blocks = std::make_shared<Chain>();
      for (int64_t i = 0; i < stage.blocks; ++i, ++block) {
        const double place = static_cast<double>(block) / static_cast<double>(total - 1);
        blocks->add(std::make_shared<ConvNextBlock>(channels, stochastic_depth * place));
      }
      features_->add(std::move(blocks));
    }
    classifier_ =
        register_module("classifier", std::make_shared<ConvNextClassifier>(channels, classes));
    init();
  }

  at::Tensor forward(at::Tensor x) override {
    x = at::adaptive_avg_pool2d(features_->forward(std::move(x)), {1, 1});
    return classifier_->forward(std::move(x));
  }

 private:
  void init() {
    const auto start = [](at::Tensor& weight, at::Tensor& bias) {
      cut_normal_(weight, 0.02);
      nn::init::zeros_(bias);
    };
    for (const auto& module : modules(/*include_self=*/false)) {
      if (auto* convolution = module->as<nn::Conv2dImpl>()) {
        start(convolution->weight, convolution->bias);
      } else if (auto* linear = module->as<nn::LinearImpl>()) {
        start(linear->weight, linear->bias);
      }
    }
  }

  std::shared_ptr<Chain> features_;
  std::shared_ptr<Model> classifier_;
};

}  // namespace

std::vector<ZooNetwork> convnexts() {
  return {{"convnext_tiny",
           "28.6 million parameters with 1000 classes",
           {.stochastic_depth = 0.1},
           [](const ZooSettings& chosen, int64_t classes) {
             return std::make_shared<ConvNext>(classes, *chosen.stochastic_depth);
           }}};
}

}  // namespace lockstep::inline internal
