#include "lockstep/models/backbone/det_mobilenet_v3_enhance.h"

#include <ATen/ops/hardswish.h>
#include <ATen/ops/relu.h>
#include <fmt/format.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>

#include <algorithm>
#include <array>
#include <vector>

#include "lockstep/error.h"
#include "lockstep/models/backbone/det_mobilenet_v3.h"
#include "lockstep/models/layers.h"

namespace lockstep::inline internal {
namespace {

namespace nn = torch::nn;

enum class MobileActivation { kNone, kRelu, kHardSwish };

/// A convolution's shape besides its channels.
struct MobileConvShape {
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t groups = 1;
};

/// Convolution, batch norm, activation.
class MobileConv final : public Model {
 public:
  MobileConv(int64_t in, int64_t out, MobileConvShape shape, MobileActivation activation)
      : activation_(activation),
        conv_(register_module("conv", nn::Conv2d(nn::Conv2dOptions(in, out, shape.kernel)
                                                     .stride(shape.stride)
                                                     .padding(shape.kernel / 2)
                                                     .groups(shape.groups)
                                                     .bias(false)))),
        norm_(register_module("bn", nn::BatchNorm2d(out))) {}

  at::Tensor forward(at::Tensor x) override {
    x = norm_->forward(conv_->forward(x));
    if (activation_ == MobileActivation::kNone) return x;
    return activation_ == MobileActivation::kRelu ? at::relu(x) : at::hardswish(x);
  }

 private:
  MobileActivation activation_;
  nn::Conv2d conv_;
  nn::BatchNorm2d norm_;
};

/// Expand, depthwise, squeeze, project; plus x if the shapes allow it.
class MobileUnit final : public Model {
 public:
  MobileUnit(int64_t in, int64_t middle, int64_t out, const MobileBlock& block, bool squeezes)
      : adds_(block.stride == 1 && in == out) {
    const auto activation =
        block.hard_swish ? MobileActivation::kHardSwish : MobileActivation::kRelu;
    const auto add = [&](const char* name, std::shared_ptr<Model> part) {
      parts_.push_back(register_module(name, std::move(part)));
    };
    add("expand_conv", std::make_shared<MobileConv>(in, middle, MobileConvShape{}, activation));
    add("bottleneck_conv",
        std::make_shared<MobileConv>(
            middle, middle, MobileConvShape{block.kernel, block.stride, middle}, activation));
    if (squeezes) add("mid_se", make_squeeze(middle));
    add("linear_conv",
        std::make_shared<MobileConv>(middle, out, MobileConvShape{}, MobileActivation::kNone));
  }

  at::Tensor forward(at::Tensor x) override {
    at::Tensor y = x;
    for (auto& part : parts_) y = part->forward(y);
    return adds_ ? x + y : y;
  }

 private:
  bool adds_;
  std::vector<std::shared_ptr<Model>> parts_;
};

class DetMobileNetV3Enhance final : public Backbone {
 public:
  explicit DetMobileNetV3Enhance(const BackboneSpec& spec) {
    const auto scaled = [&](int64_t channels) {
      return round_to_8(spec.alpha * static_cast<double>(channels));
    };
    const bool large = spec.architecture == "large";
    int64_t channels = scaled(16);
    conv_ =
        register_module("conv", std::make_shared<MobileConv>(3, channels, MobileConvShape{3, 2, 1},
                                                             MobileActivation::kHardSwish));
    nn::Sequential stage;
    int stride = large ? 1 : 2;  // of all blocks so far; the first convolution adds a factor of 2
    for (const auto& block : mobile_blocks(spec.architecture)) {
      if (block.stride == 2 && !stage->is_empty() && stride >= 2) {
        end_stage(stage, channels);
        stage = nn::Sequential();
      }
      if (block.stride == 2) stride *= 2;
      const int64_t out = scaled(block.out);
      stage->push_back(std::make_shared<MobileUnit>(channels, scaled(block.expanded), out, block,
                                                    block.squeezes && !spec.disable_se));
      channels = out;
    }
    const int64_t last = scaled(large ? 960 : 576);
    stage->push_back(std::make_shared<MobileConv>(channels, last, MobileConvShape{},
                                                  MobileActivation::kHardSwish));
    end_stage(stage, last);
    register_module("stages", stages_);
  }

  Tensors features(at::Tensor x) override {
    x = conv_->forward(std::move(x));
    Tensors maps;
    for (const auto& stage : *stages_) {
      x = stage->as<nn::SequentialImpl>()->forward(x);
      maps.push_back(x);
    }
    return maps;
  }

  std::vector<int64_t> feature_channels() const override { return channels_; }

 private:
  void end_stage(const nn::Sequential& stage, int64_t channels) {
    stages_->push_back(stage);
    channels_.push_back(channels);
  }

  std::shared_ptr<MobileConv> conv_;
  nn::ModuleList stages_;
  std::vector<int64_t> channels_;
};

}  // namespace

std::shared_ptr<Backbone> make_det_mobilenet_v3_enhance(const BackboneSpec& spec) {
  constexpr std::array kAlphas = {0.35, 0.5, 0.75, 1.0, 1.25};
  std::string fault;
  if (spec.architecture != "large" && spec.architecture != "small") {
    fault = fmt::format("architecture is '{}' (large, small)", spec.architecture);
  } else if (std::find(kAlphas.begin(), kAlphas.end(), spec.alpha) == kAlphas.end()) {
    fault = fmt::format("alpha is {} (0.35, 0.5, 0.75, 1, 1.25)", spec.alpha);
  }
  if (!fault.empty()) throw Error(ErrorCode::kInvalidArgument, "model.backbone." + fault);
  return std::make_shared<DetMobileNetV3Enhance>(spec);
}

}  // namespace lockstep::inline internal
