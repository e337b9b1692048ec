#include "lockstep/models/neck/rse_fpn.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/conv.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "lockstep/error.h"
#include "lockstep/models/layers.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;

constexpr size_t kRseLevels = 4;

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
    for (size_t i = 0; i < kRseLevels; ++i) maps[i] = apply(*ins_, i, maps[i]);
    for (size_t i = kRseLevels - 1; i-- > 0;) maps[i] = maps[i] + nearest_as(maps[i + 1], maps[i]);
    const at::Tensor finest = maps[0];
    for (size_t i = 0; i < kRseLevels; ++i) maps[i] = nearest_as(apply(*inp_, i, maps[i]), finest);
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

}  // namespace

std::vector<int64_t> nearest_places(int64_t in, int64_t out) {
  const float step = out > 1 ? static_cast<float>(in - 1) / static_cast<float>(out - 1) : 0;
  std::vector<int64_t> places;
  for (int64_t i = 0; i < out; ++i) {
    places.push_back(std::min(in - 1, std::lround(static_cast<float>(i) * step)));
  }
  return places;
}

std::shared_ptr<Neck> make_rse_fpn(const std::vector<int64_t>& in_channels, const NeckSpec& spec) {
  if (in_channels.size() != kRseLevels) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("RSEFPN takes 4 feature maps, the backbone gives {}", in_channels.size()));
  }
  if (spec.out_channels < 16 || spec.out_channels % 16 != 0) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("model.neck.out_channels is {}; RSEFPN takes a multiple of 16",
                            spec.out_channels));
  }
  return std::make_shared<RseFpn>(in_channels, spec);
}

}  // namespace lockstep
