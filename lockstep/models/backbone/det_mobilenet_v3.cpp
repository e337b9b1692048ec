#include "lockstep/models/backbone/det_mobilenet_v3.h"

#include <ATen/ops/hardsigmoid.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/relu.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "lockstep/error.h"
#include "lockstep/models/layers.h"

namespace lockstep::inline internal {
namespace {

namespace nn = torch::nn;

constexpr MobileBlock kLarge[] = {
    {3, 16, 16, false, false, 1}, {3, 64, 24, false, false, 2}, {3, 72, 24, false, false, 1},
    {5, 72, 40, true, false, 2},  {5, 120, 40, true, false, 1}, {5, 120, 40, true, false, 1},
    {3, 240, 80, false, true, 2}, {3, 200, 80, false, true, 1}, {3, 184, 80, false, true, 1},
    {3, 184, 80, false, true, 1}, {3, 480, 112, true, true, 1}, {3, 672, 112, true, true, 1},
    {5, 672, 160, true, true, 2}, {5, 960, 160, true, true, 1}, {5, 960, 160, true, true, 1},
};

constexpr MobileBlock kSmall[] = {
    {3, 16, 16, true, false, 2}, {3, 72, 24, false, false, 2}, {3, 88, 24, false, false, 1},
    {5, 96, 40, true, true, 2},  {5, 240, 40, true, true, 1},  {5, 240, 40, true, true, 1},
    {5, 120, 48, true, true, 1}, {5, 144, 48, true, true, 1},  {5, 288, 96, true, true, 2},
    {5, 576, 96, true, true, 1}, {5, 576, 96, true, true, 1},
};

nn::Conv2d conv_1x1(int64_t in, int64_t out, bool bias = false) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, 1).bias(bias));
}

/// libtorch 1.13 has the function, but no module. This one takes a place in the list of layers.
class HardSwish final : public Model {
 public:
  at::Tensor forward(at::Tensor x) override { return at::hardswish(x); }
};

void add_activation(nn::Sequential& layers, bool hard_swish) {
  if (hard_swish) {
    layers->push_back(std::make_shared<HardSwish>());
  } else {
    layers->push_back(nn::ReLU(nn::ReLUOptions(/*inplace=*/true)));
  }
}

/// x * hardsigmoid(expand(relu(reduce(mean of x)))). `Layer`: the type of reduce and expand.
template <typename Layer>
class SqueezeExcite final : public Model {
 public:
  SqueezeExcite(Layer reduce, Layer expand)
      : reduce_(register_module("conv_reduce", std::move(reduce))),
        expand_(register_module("conv_expand", std::move(expand))) {}

  at::Tensor forward(at::Tensor x) override {
    const bool keeps_dims = std::is_same_v<Layer, nn::Conv2d>;
    const at::Tensor mean = x.mean({2, 3}, keeps_dims);
    const at::Tensor gate = at::hardsigmoid(expand_->forward(reduce_->forward(mean).relu_()));
    return x * (keeps_dims ? gate : gate.unsqueeze(-1).unsqueeze(-1));
  }

 private:
  Layer reduce_;
  Layer expand_;
};

void add_squeeze(nn::Sequential& layers, int64_t channels, bool v2) {
  if (!v2) {
    const int64_t reduced = round_to_8(static_cast<double>(channels) / 4);
    layers->push_back(std::make_shared<SqueezeExcite<nn::Conv2d>>(
        conv_1x1(channels, reduced, /*bias=*/true), conv_1x1(reduced, channels, /*bias=*/true)));
  } else {
    const int64_t reduced = channels / 4;
    layers->push_back(std::make_shared<SqueezeExcite<nn::Linear>>(nn::Linear(channels, reduced),
                                                                  nn::Linear(reduced, channels)));
  }
}

/// Expand, depthwise, squeeze, project; plus x if the shapes allow it.
class DetInvertedResidual final : public Model {
 public:
  DetInvertedResidual(int64_t in, int64_t expanded, int64_t out, const MobileBlock& block,
                      const BackboneSpec& spec)
      : adds_(block.stride == 1 && in == out),
        layers_(register_module("layers", nn::Sequential())) {
    if (in != expanded || spec.always_expand) {
      layers_->push_back(conv_1x1(in, expanded));
      layers_->push_back(nn::BatchNorm2d(expanded));
      add_activation(layers_, block.hard_swish);
    }
    layers_->push_back(
        std::make_shared<SameConv2d>(nn::Conv2dOptions(expanded, expanded, block.kernel)
                                         .stride(block.stride)
                                         .groups(expanded)
                                         .bias(false)));
    layers_->push_back(nn::BatchNorm2d(expanded));
    add_activation(layers_, block.hard_swish);
    if (block.squeezes) add_squeeze(layers_, expanded, spec.squeeze_v2);
    layers_->push_back(conv_1x1(expanded, out));
    layers_->push_back(nn::BatchNorm2d(out));
  }

  at::Tensor forward(at::Tensor x) override {
    const at::Tensor y = layers_->forward(x);
    return adds_ ? x + y : y;
  }

 private:
  bool adds_;
  nn::Sequential layers_;
};

void init_mobilenet(nn::Module& net) {
  for (const auto& module : net.modules()) {
    if (auto* conv = module->as<nn::Conv2dImpl>()) {
      const auto& weight = conv->weight;
      const auto n = static_cast<double>(weight.size(0) * weight.size(2) * weight.size(3));
      nn::init::normal_(weight, 0, std::sqrt(2 / n));
      if (conv->bias.defined()) nn::init::zeros_(conv->bias);
    } else if (auto* linear = module->as<nn::LinearImpl>()) {
      nn::init::normal_(linear->weight, 0, 0.01);
      nn::init::zeros_(linear->bias);
    }
  }
}

class DetMobileNetV3 final : public Backbone {
 public:
  explicit DetMobileNetV3(const BackboneSpec& spec)
      : features_(register_module("features", nn::Sequential())) {
    const auto scaled = [&](int64_t channels) {
      return round_to_8(spec.alpha * static_cast<double>(channels));
    };
    int64_t channels = scaled(16);
    add_stem(nn::Conv2d(nn::Conv2dOptions(3, channels, 3).stride(2).padding(1).bias(false)));
    for (const auto& block : mobile_blocks(spec.architecture)) {
      const int64_t out = scaled(block.out);
      features_->push_back(std::make_shared<DetInvertedResidual>(channels, scaled(block.expanded),
                                                                 out, block, spec));
      widths_.push_back(channels = out);
    }
    add_stem(conv_1x1(channels, channels * 6));
    take(spec.out_stages);
  }

  Tensors features(at::Tensor x) override {
    Tensors taken;
    int64_t place = 0;
    for (auto& layer : *features_) {
      if (taken.size() == stages_.size()) break;
      x = layer.forward(x);
      if (place++ == stages_[taken.size()]) taken.push_back(x);
    }
    return taken;
  }

  std::vector<int64_t> feature_channels() const override {
    std::vector<int64_t> channels;
    for (const int64_t stage : stages_) channels.push_back(widths_[static_cast<size_t>(stage)]);
    return channels;
  }

 private:
  void add_stem(const nn::Conv2d& conv) {
    const int64_t out = conv->options.out_channels();
    features_->push_back(conv);
    features_->push_back(nn::BatchNorm2d(out));
    features_->push_back(std::make_shared<HardSwish>());
    widths_.insert(widths_.end(), 3, out);
  }

  void take(const std::vector<int64_t>& stages) {
    const auto places = static_cast<int64_t>(widths_.size());
    stages_ = stages.empty() ? std::vector<int64_t>{places - 1} : stages;
    const bool ascend = std::is_sorted(stages_.begin(), stages_.end(), std::less_equal<>());
    if (ascend && stages_.front() >= 0 && stages_.back() < places) return;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("model.backbone.out_stages is [{}]; ascending places from 0 to {}",
                            fmt::join(stages_, ", "), places - 1));
  }

  nn::Sequential features_;
  std::vector<int64_t> widths_;  // channels behind each place
  std::vector<int64_t> stages_;
};

}  // namespace

std::span<const MobileBlock> mobile_blocks(const std::string& architecture) {
  if (architecture == "large") return kLarge;
  return kSmall;
}

int64_t round_to_8(double channels) {
  const auto nearest = std::max<int64_t>(8, static_cast<int64_t>(channels + 4) / 8 * 8);
  return static_cast<double>(nearest) < 0.9 * channels ? nearest + 8 : nearest;
}

std::shared_ptr<Backbone> make_det_mobilenet_v3(const BackboneSpec& spec) {
  std::string fault;
  if (spec.architecture != "large" && spec.architecture != "small") {
    fault = fmt::format("architecture is '{}' (large, small)", spec.architecture);
  } else if (!(spec.alpha > 0 && spec.alpha <= 16)) {
    fault = fmt::format("alpha is {}; above 0, at most 16", spec.alpha);
  }
  if (!fault.empty()) throw Error(ErrorCode::kInvalidArgument, "model.backbone." + fault);
  auto net = std::make_shared<DetMobileNetV3>(spec);
  init_mobilenet(*net);
  return net;
}

}  // namespace lockstep::inline internal
