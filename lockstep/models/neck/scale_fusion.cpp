#include "lockstep/models/neck/scale_fusion.h"

#include <ATen/ops/cat.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>

#include "lockstep/models/layers.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;

nn::Conv2d fusion_conv(int64_t in, int64_t out, int64_t kernel, bool bias = false) {
  nn::Conv2d conv(nn::Conv2dOptions(in, out, kernel).padding(kernel / 2).bias(bias));
  he_uniform_(conv->weight);
  return conv;
}

class ScaleFusion final : public Neck {
 public:
  ScaleFusion(int64_t channels, bool channel_attention)
      : channels_(channels),
        conv_(register_module("conv", fusion_conv(channels, channels / 4, 3, /*bias=*/true))) {
    const int64_t reduced = channels / 4;
    if (channel_attention) {
      chan_att_ = register_module(
          "chan_att", nn::Sequential(fusion_conv(reduced, reduced / 4, 1), nn::ReLU(),
                                     fusion_conv(reduced / 4, reduced, 1), nn::Sigmoid()));
    }
    spat_att_ = register_module("spat_att", nn::Sequential(fusion_conv(1, 1, 3), nn::ReLU(),
                                                           fusion_conv(1, 1, 1), nn::Sigmoid()));
    scale_att_ =
        register_module("scale_att", nn::Sequential(fusion_conv(reduced, 4, 1), nn::Sigmoid()));
  }

  at::Tensor forward(std::vector<at::Tensor> maps) override {
    at::Tensor x = conv_->forward(at::cat(maps, 1));
    if (!chan_att_.is_empty()) x = chan_att_->forward(x.mean({2, 3}, /*keepdim=*/true)) + x;
    x = spat_att_->forward(x.mean({1}, /*keepdim=*/true)) + x;
    const at::Tensor weights = scale_att_->forward(x);
    for (size_t i = 0; i < maps.size(); ++i) {
      maps[i] = maps[i] * weights.narrow(1, static_cast<int64_t>(i), 1);
    }
    return at::cat(maps, 1);
  }

  int64_t out_channels() const override { return channels_; }

 private:
  int64_t channels_;
  nn::Conv2d conv_;
  nn::Sequential chan_att_{nullptr};
  nn::Sequential spat_att_{nullptr};
  nn::Sequential scale_att_{nullptr};
};

}  // namespace

std::shared_ptr<Neck> make_scale_fusion(int64_t channels, bool channel_attention) {
  return std::make_shared<ScaleFusion>(channels, channel_attention);
}

}  // namespace lockstep
