#include "lockstep/models/necks.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <fmt/format.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/rnn.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "lockstep/error.h"
#include "lockstep/models/layers.h"

namespace lockstep::inline internal {
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

/// Adaptive scale fusion: each of four maps is weighted, place by place, before they are
/// concatenated. The weights come from the maps themselves: a 3x3 convolution of all to `channels`
/// / 4, plus optional channel attention, plus spatial attention, then one sigmoid a map. forward:
/// four (N, channels / 4, H, W) -> (N, channels, H, W). Names: conv, chan_att.{0,2},
/// spat_att.{0,2}, scale_att.0; only conv has a bias. Source: Liao et al., "Real-Time Scene Text
/// Detection with Differentiable Binarization and Adaptive Scale Fusion", TPAMI 2022. As in
/// MindOCR, attentions are added, not multiplied.
std::shared_ptr<Neck> make_scale_fusion(int64_t channels, bool channel_attention) {
  return std::make_shared<ScaleFusion>(channels, channel_attention);
}

constexpr size_t kLevels = 4;

at::Tensor resized_as(const at::Tensor& x, const at::Tensor& pattern) {
  if (x.size(2) == pattern.size(2) && x.size(3) == pattern.size(3)) return x;
  return at::upsample_nearest2d(x, {pattern.size(2), pattern.size(3)});
}

class DbFpn final : public Neck {
 public:
  DbFpn(const std::vector<int64_t>& in_channels, const NeckSpec& spec)
      : channels_(spec.out_channels),
        unify_(register_module("unify_channels", torch::nn::ModuleList())),
        out_(register_module("out", torch::nn::ModuleList())) {
    for (const int64_t in : in_channels) unify_->push_back(level(in, channels_, 1, spec.bias));
    for (size_t i = 0; i < kLevels; ++i) {
      out_->push_back(level(channels_, channels_ / 4, 3, spec.bias));
    }
    if (!spec.use_asf) return;
    fuse_ = register_module("fuse", make_scale_fusion(channels_, spec.channel_attention));
  }

  at::Tensor forward(std::vector<at::Tensor> maps) override {
    for (size_t i = 0; i < kLevels; ++i) maps[i] = apply(*unify_, i, maps[i]);
    for (size_t i = kLevels - 1; i-- > 0;) maps[i] = maps[i] + resized_as(maps[i + 1], maps[i]);
    const at::Tensor finest = maps[0];
    for (size_t i = 0; i < kLevels; ++i) maps[i] = resized_as(apply(*out_, i, maps[i]), finest);
    std::reverse(maps.begin(), maps.end());
    return fuse_ ? fuse_->forward(std::move(maps)) : at::cat(maps, 1);
  }

  int64_t out_channels() const override { return channels_; }

 private:
  static torch::nn::Conv2d level(int64_t in, int64_t out, int64_t kernel, bool bias) {
    torch::nn::Conv2d conv(
        torch::nn::Conv2dOptions(in, out, kernel).padding(kernel / 2).bias(bias));
    he_uniform_(conv->weight);
    return conv;
  }

  static at::Tensor apply(torch::nn::ModuleListImpl& list, size_t i, const at::Tensor& x) {
    return list[i]->as<torch::nn::Conv2dImpl>()->forward(x);
  }

  int64_t channels_;
  torch::nn::ModuleList unify_;
  torch::nn::ModuleList out_;
  std::shared_ptr<Neck> fuse_;
};

at::Tensor nearest(const at::Tensor& x, int64_t dim, int64_t size) {
  if (x.size(dim) == size) return x;
  const auto places = at::tensor(nearest_places(x.size(dim), size), at::kLong).to(x.device());
  return x.index_select(dim, places);
}

at::Tensor nearest_as(const at::Tensor& x, const at::Tensor& pattern) {
  return nearest(nearest(x, 2, pattern.size(2)), 3, pattern.size(3));
}

class RseLayer final : public Model {
 public:
  RseLayer(int64_t in, int64_t out, int64_t kernel, bool shortcut)
      : shortcut_(shortcut),
        conv_(register_module(
            "in_conv",
            nn::Conv2d(nn::Conv2dOptions(in, out, kernel).padding(kernel / 2).bias(false)))),
        squeeze_(register_module("se_block", make_squeeze(out))) {
    he_uniform_(conv_->weight);
  }

  at::Tensor forward(at::Tensor input) override {
    const at::Tensor x = conv_->forward(input);
    const at::Tensor weighed = squeeze_->forward(x);
    return shortcut_ ? x + weighed : weighed;
  }

 private:
  bool shortcut_;
  nn::Conv2d conv_;
  std::shared_ptr<Model> squeeze_;
};

class RseFpn final : public Neck {
 public:
  RseFpn(const std::vector<int64_t>& in_channels, const NeckSpec& spec)
      : channels_(spec.out_channels),
        ins_(register_module("ins_conv", nn::ModuleList())),
        inp_(register_module("inp_conv", nn::ModuleList())) {
    for (const int64_t in : in_channels) {
      ins_->push_back(std::make_shared<RseLayer>(in, channels_, 1, spec.shortcut));
      inp_->push_back(std::make_shared<RseLayer>(channels_, channels_ / 4, 3, spec.shortcut));
    }
  }

  at::Tensor forward(std::vector<at::Tensor> maps) override {
    for (size_t i = 0; i < kLevels; ++i) maps[i] = apply(*ins_, i, maps[i]);
    for (size_t i = kLevels - 1; i-- > 0;) maps[i] = maps[i] + nearest_as(maps[i + 1], maps[i]);
    const at::Tensor finest = maps[0];
    for (size_t i = 0; i < kLevels; ++i) maps[i] = nearest_as(apply(*inp_, i, maps[i]), finest);
    std::reverse(maps.begin(), maps.end());
    return at::cat(maps, 1);
  }

  int64_t out_channels() const override { return channels_; }

 private:
  static at::Tensor apply(nn::ModuleListImpl& list, size_t i, const at::Tensor& x) {
    return list[i]->as<RseLayer>()->forward(x);
  }

  int64_t channels_;
  nn::ModuleList ins_;
  nn::ModuleList inp_;
};

class RnnEncoder final : public Neck {
 public:
  RnnEncoder(int64_t in_channels, int64_t hidden_size)
      : channels_(2 * hidden_size),
        lstm_(register_module("seq_encoder",
                              torch::nn::LSTM(torch::nn::LSTMOptions(in_channels, hidden_size)
                                                  .num_layers(2)
                                                  .bidirectional(true)))) {}

  at::Tensor forward(std::vector<at::Tensor> features) override {
    const at::Tensor& map = features.back();
    if (map.size(2) != 1) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("RNNEncoder takes feature maps one row high, not {}: images for this "
                              "backbone are 32 rows high",
                              map.size(2)));
    }
    const at::Tensor columns = map.squeeze(2).permute({2, 0, 1}).contiguous();
    return std::get<0>(lstm_->forward(columns));
  }

  int64_t out_channels() const override { return channels_; }

 private:
  int64_t channels_;
  torch::nn::LSTM lstm_;
};

/// `multiple`: of the network's out_channels.
template <typename Fpn>
std::shared_ptr<Neck> make_fpn(const char* name, int64_t multiple,
                               const std::vector<int64_t>& in_channels, const NeckSpec& spec) {
  if (in_channels.size() != kLevels) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} takes 4 feature maps, the backbone gives {} (det_mobilenet_v3: "
                            "model.backbone.out_stages)",
                            name, in_channels.size()));
  }
  if (spec.out_channels < multiple || spec.out_channels % multiple != 0) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("model.neck.out_channels is {}; {} takes a multiple of {}",
                            spec.out_channels, name, multiple));
  }
  return std::make_shared<Fpn>(in_channels, spec);
}

}  // namespace

std::shared_ptr<Neck> make_db_fpn(const std::vector<int64_t>& in_channels, const NeckSpec& spec) {
  return make_fpn<DbFpn>("DBFPN", 4, in_channels, spec);
}

std::vector<int64_t> nearest_places(int64_t in, int64_t out) {
  const float step = out > 1 ? static_cast<float>(in - 1) / static_cast<float>(out - 1) : 0;
  std::vector<int64_t> places;
  for (int64_t i = 0; i < out; ++i) {
    places.push_back(std::min(in - 1, std::lround(static_cast<float>(i) * step)));
  }
  return places;
}

std::shared_ptr<Neck> make_rse_fpn(const std::vector<int64_t>& in_channels, const NeckSpec& spec) {
  return make_fpn<RseFpn>("RSEFPN", 16, in_channels, spec);
}

std::shared_ptr<Neck> make_rnn_encoder(int64_t in_channels, int64_t hidden_size) {
  if (hidden_size < 1) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("model.neck.hidden_size is {}; at least 1", hidden_size));
  }
  return std::make_shared<RnnEncoder>(in_channels, hidden_size);
}

}  // namespace lockstep::inline internal
