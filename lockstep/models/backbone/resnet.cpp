#include "lockstep/models/backbone/resnet.h"

#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <array>

#include "lockstep/error.h"
#include "lockstep/models/deform/deform_conv.h"
#include "lockstep/models/layers.h"

namespace lockstep::inline internal {
namespace {

namespace nn = torch::nn;

nn::Conv2d conv(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t groups = 1) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel)
                        .stride(stride)
                        .padding(kernel / 2)
                        .groups(groups)
                        .bias(false));
}

/// One residual block: relu(branch(x) + shortcut(x)). (N, in, H, W) -> (N, out, H/stride, ...).
class Block : public Model {
 public:
  at::Tensor forward(at::Tensor x) final {
    const at::Tensor shortcut = downsample_.is_empty() ? x : downsample_->forward(x);
    return branch(std::move(x)).add_(shortcut).relu_();
  }
  virtual nn::BatchNorm2d& last_norm() = 0;

  /// Turns conv2, which is 3x3, into a deformable convolution.
  void deform() { offsets_ = register_module("conv2_offset", make_offset_conv(conv2_)); }

 protected:
  virtual at::Tensor branch(at::Tensor x) = 0;

  // torchvision constructs the shortcut's layers before the block's own and registers them last.
  explicit Block(nn::Sequential downsample) : downsample_(std::move(downsample)) {}
  void set_conv2(const nn::Conv2d& conv2) { conv2_ = conv2; }
  at::Tensor conv2(const at::Tensor& x) {
    return offsets_.is_empty() ? conv2_->forward(x) : deformed(conv2_, offsets_, x);
  }
  void register_downsample() {
    if (!downsample_.is_empty()) register_module("downsample", downsample_);
  }

 private:
  nn::Sequential downsample_;
  nn::Conv2d conv2_{nullptr};
  nn::Conv2d offsets_{nullptr};
};

/// Which convolution of a bottleneck has its stride.
enum class StrideIn { kFirst, kMiddle };

class BasicBlock final : public Block {
 public:
  static constexpr int64_t kExpansion = 1;

  BasicBlock(int64_t in, int64_t planes, int64_t stride, StrideIn /*fixed: the first*/,
             const BottleneckWidth& /*it has no bottleneck*/, nn::Sequential downsample)
      : Block(std::move(downsample)),
        conv1_(register_module("conv1", conv(in, planes, 3, stride))),
        bn1_(register_module("bn1", nn::BatchNorm2d(planes))),
        conv2_(register_module("conv2", conv(planes, planes, 3, 1))),
        bn2_(register_module("bn2", nn::BatchNorm2d(planes))) {
    set_conv2(conv2_);
    register_downsample();
  }
  nn::BatchNorm2d& last_norm() override { return bn2_; }

 private:
  at::Tensor branch(at::Tensor x) override {
    x = bn1_->forward(conv1_->forward(x)).relu_();
    return bn2_->forward(conv2(x));
  }

  nn::Conv2d conv1_;
  nn::BatchNorm2d bn1_;
  nn::Conv2d conv2_;
  nn::BatchNorm2d bn2_;
};

class Bottleneck final : public Block {
 public:
  static constexpr int64_t kExpansion = 4;

  Bottleneck(int64_t in, int64_t planes, int64_t stride, StrideIn stride_in,
             const BottleneckWidth& width, nn::Sequential downsample)
      : Block(std::move(downsample)),
        inner_(planes * width.per_group / 64 * width.groups),
        conv1_(register_module("conv1",
                               conv(in, inner_, 1, stride_in == StrideIn::kFirst ? stride : 1))),
        bn1_(register_module("bn1", nn::BatchNorm2d(inner_))),
        conv2_(register_module(
            "conv2",
            conv(inner_, inner_, 3, stride_in == StrideIn::kMiddle ? stride : 1, width.groups))),
        bn2_(register_module("bn2", nn::BatchNorm2d(inner_))),
        conv3_(register_module("conv3", conv(inner_, planes * kExpansion, 1, 1))),
        bn3_(register_module("bn3", nn::BatchNorm2d(planes * kExpansion))) {
    set_conv2(conv2_);
    register_downsample();
  }
  nn::BatchNorm2d& last_norm() override { return bn3_; }

 private:
  at::Tensor branch(at::Tensor x) override {
    x = bn1_->forward(conv1_->forward(x)).relu_();
    x = bn2_->forward(conv2(x)).relu_();
    return bn3_->forward(conv3_->forward(x));
  }

  int64_t inner_;  ///< Channels of the 3x3 convolution.
  nn::Conv2d conv1_;
  nn::BatchNorm2d bn1_;
  nn::Conv2d conv2_;
  nn::BatchNorm2d bn2_;
  nn::Conv2d conv3_;
  nn::BatchNorm2d bn3_;
};

using StageSizes = std::array<int, 4>;  // blocks per stage

/// Padding of the first max-pool: torchvision's, or MindOCR's (same_padding()).
enum class StemPool { kSymmetric, kSame };

nn::Conv2d stem_conv(Stem stem) {
  if (stem == Stem::kCifar) return conv(3, 64, 3, 1);
  if (stem != Stem::kMindSpore) return conv(3, 64, 7, 2);
  const std::shared_ptr<nn::Conv2dImpl> same =
      std::make_shared<SameConv2d>(nn::Conv2dOptions(3, 64, 7).stride(2).bias(false));
  return nn::Conv2d(same);
}

template <typename BlockKind>
class ResNet final : public Backbone {
 public:
  ResNet(const StageSizes& blocks, Stem stem, StemPool pool, const BottleneckWidth& width)
      : stem_(stem),
        pool_(pool),
        width_(width),
        conv1_(register_module("conv1", stem_conv(stem))),
        bn1_(register_module("bn1", nn::BatchNorm2d(64))) {
    for (size_t i = 0; i < stages_.size(); ++i) {
      stages_[i] = register_module(fmt::format("layer{}", i + 1),
                                   make_stage(int64_t{64} << i, blocks[i], i == 0 ? 1 : 2));
    }
  }

  std::vector<int64_t> feature_channels() const override {
    return {channels_ / 8, channels_ / 4, channels_ / 2, channels_};
  }

  Tensors features(at::Tensor x) override {
    x = pooled(bn1_->forward(first_conv(x)).relu_());
    Tensors maps;
    for (auto& stage : stages_) maps.push_back(x = stage->forward(x));
    return maps;
  }

 private:
  at::Tensor first_conv(const at::Tensor& x) {
    if (stem_ == Stem::kMindSpore) return dynamic_cast<SameConv2d&>(*conv1_).forward(x);
    return conv1_->forward(x);
  }

  at::Tensor pooled(const at::Tensor& x) const {
    if (stem_ == Stem::kCifar) return x;
    return pool_ == StemPool::kSame ? max_pool_same(x, {3, 3}, {2, 2}) : at::max_pool2d(x, 3, 2, 1);
  }

  nn::Sequential make_stage(int64_t planes, int blocks, int64_t stride) {
    const int64_t out = planes * BlockKind::kExpansion;
    const auto stride_in = stem_ == Stem::kMindSpore ? StrideIn::kFirst : StrideIn::kMiddle;
    nn::Sequential downsample{nullptr};
    if (stride != 1 || channels_ != out) {
      downsample = nn::Sequential(conv(channels_, out, 1, stride), nn::BatchNorm2d(out));
    }
    nn::Sequential stage;
    const auto add = [&](int64_t own_stride, const nn::Sequential& shortcut) {
      stage->push_back(
          std::make_shared<BlockKind>(channels_, planes, own_stride, stride_in, width_, shortcut));
    };
    add(stride, downsample);
    channels_ = out;
    for (int i = 1; i < blocks; ++i) add(1, nn::Sequential{nullptr});
    return stage;
  }

  Stem stem_;
  StemPool pool_;
  BottleneckWidth width_;
  int64_t channels_ = 64;
  nn::Conv2d conv1_;
  nn::BatchNorm2d bn1_;
  std::array<nn::Sequential, 4> stages_{nn::Sequential{nullptr}, nn::Sequential{nullptr},
                                        nn::Sequential{nullptr}, nn::Sequential{nullptr}};
};

std::shared_ptr<Backbone> make_network(int depth, Stem stem, StemPool pool,
                                       const BottleneckWidth& width = {}) {
  switch (depth) {
    case 18:
      return std::make_shared<ResNet<BasicBlock>>(StageSizes{2, 2, 2, 2}, stem, pool, width);
    case 34:
      return std::make_shared<ResNet<BasicBlock>>(StageSizes{3, 4, 6, 3}, stem, pool, width);
    case 50:
      return std::make_shared<ResNet<Bottleneck>>(StageSizes{3, 4, 6, 3}, stem, pool, width);
    case 101:
      return std::make_shared<ResNet<Bottleneck>>(StageSizes{3, 4, 23, 3}, stem, pool, width);
    case 152:
      return std::make_shared<ResNet<Bottleneck>>(StageSizes{3, 8, 36, 3}, stem, pool, width);
    default:
      throw Error(ErrorCode::kInvalidArgument, fmt::format("no ResNet of depth {} ({})", depth,
                                                           fmt::join(resnet_depths(), ", ")));
  }
}

}  // namespace

const std::vector<int>& resnet_depths() {
  static const std::vector<int> depths = {18, 34, 50, 101, 152};
  return depths;
}

std::shared_ptr<Backbone> make_resnet(int depth, Stem stem, const BottleneckWidth& width) {
  const bool same = stem == Stem::kMindCv || stem == Stem::kMindSpore;
  return make_network(depth, stem, same ? StemPool::kSame : StemPool::kSymmetric, width);
}

std::shared_ptr<Backbone> make_det_resnet(int depth, bool dcn) {
  auto net = make_network(depth, Stem::kImageNet, StemPool::kSame);
  init_resnet(*net, /*zero_init_residual=*/false);
  if (!dcn) return net;
  for (const auto& module : net->named_modules("", /*include_self=*/false)) {
    auto* block = dynamic_cast<Block*>(module.value().get());
    if (block != nullptr && !module.key().starts_with("layer1.")) block->deform();
  }
  return net;
}

void init_resnet(torch::nn::Module& net, bool zero_init_residual) {
  for (const auto& module : net.modules()) {
    if (auto* convolution = module->as<nn::Conv2dImpl>()) {
      nn::init::kaiming_normal_(convolution->weight, 0, torch::kFanOut, torch::kReLU);
    } else if (auto* norm = module->as<nn::BatchNorm2dImpl>()) {
      nn::init::ones_(norm->weight);
      nn::init::zeros_(norm->bias);
    }
  }
  if (!zero_init_residual) return;
  for (const auto& module : net.modules()) {
    if (auto* block = dynamic_cast<Block*>(module.get())) {
      nn::init::zeros_(block->last_norm()->weight);
    }
  }
}

void init_as_mindspore(torch::nn::Module& net) {
  constexpr double kBound = 0.07;     // of MindSpore's initializer "Uniform"
  constexpr double kMomentum = 0.01;  // the weight of the new statistics
  for (const auto& module : net.modules()) {
    if (auto* convolution = module->as<nn::Conv2dImpl>()) {
      nn::init::xavier_uniform_(convolution->weight);
    } else if (auto* norm = module->as<nn::BatchNorm2dImpl>()) {
      nn::init::uniform_(norm->weight, -kBound, kBound);
      nn::init::zeros_(norm->bias);
      norm->options.momentum(kMomentum);
    } else if (auto* linear = module->as<nn::LinearImpl>()) {
      nn::init::xavier_uniform_(linear->weight);
      nn::init::uniform_(linear->bias, -kBound, kBound);
    }
  }
}

}  // namespace lockstep::inline internal
