#include "lockstep/models/heads.h"

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/pixel_shuffle.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <fmt/format.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <cmath>

#include "lockstep/error.h"
#include "lockstep/models/layers.h"

namespace lockstep::inline internal {
namespace {

namespace nn = torch::nn;

class ClsHead final : public Model {
 public:
  ClsHead(int64_t in_channels, int64_t num_classes)
      : fc_(register_module("fc", torch::nn::Linear(in_channels, num_classes))) {}

  at::Tensor forward(at::Tensor features) override {
    return fc_->forward(at::adaptive_avg_pool2d(features, {1, 1}).flatten(1));
  }

 private:
  torch::nn::Linear fc_;
};

constexpr const char* kCustomised = "crnn_customised";

[[noreturn]] void refuse_head(const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, "CTCHead: " + why);
}

void check_ctc_head(const HeadSpec& spec) {
  if (spec.out_channels < 2) {
    refuse_head(fmt::format("out_channels is {}; it counts the characters and the blank",
                            spec.out_channels));
  }
  if (spec.mid_channels.value_or(1) < 1) {
    refuse_head(fmt::format("mid_channels is {}; at least 1, or null", *spec.mid_channels));
  }
  if (spec.weight_init != "normal" && spec.weight_init != kCustomised) {
    refuse_head(fmt::format("weight_init '{}' (normal, {})", spec.weight_init, kCustomised));
  }
  if (spec.bias_init != "zeros" && spec.bias_init != kCustomised) {
    refuse_head(fmt::format("bias_init '{}' (zeros, {})", spec.bias_init, kCustomised));
  }
  if (!(spec.dropout >= 0 && spec.dropout < 1)) {
    refuse_head(fmt::format("dropout is {}; at least 0 and below 1", spec.dropout));
  }
}

class CtcHead final : public Model {
 public:
  CtcHead(int64_t in_channels, const HeadSpec& spec) : dropout_(spec.dropout) {
    const double bound = 1 / std::sqrt(static_cast<double>(in_channels));
    const int64_t first = spec.mid_channels.value_or(spec.out_channels);
    dense1_ = register_module("dense1", dense(in_channels, first, spec, bound));
    if (!spec.mid_channels) return;
    dense2_ = register_module("dense2", dense(first, spec.out_channels, spec, bound));
  }

  at::Tensor forward(at::Tensor x) override {
    x = dense1_->forward(x);
    if (!dense2_.is_empty()) x = dense2_->forward(at::dropout(x, dropout_, is_training()));
    return is_training() ? x : at::softmax(x, 2).transpose(0, 1).contiguous();
  }

 private:
  static torch::nn::Linear dense(int64_t in, int64_t out, const HeadSpec& spec, double bound) {
    torch::nn::Linear layer(in, out);
    if (spec.weight_init == kCustomised) {
      torch::nn::init::uniform_(layer->weight, -bound, bound);
    } else {
      torch::nn::init::normal_(layer->weight, 0, 0.01);
    }
    if (spec.bias_init == kCustomised) {
      torch::nn::init::uniform_(layer->bias, -bound, bound);
    } else {
      torch::nn::init::zeros_(layer->bias);
    }
    return layer;
  }

  double dropout_;
  torch::nn::Linear dense1_{nullptr};
  torch::nn::Linear dense2_{nullptr};
};

/// A transposed 2x2 convolution of stride 2. Its windows do not overlap, so it equals a 1x1
/// convolution to four times the channels, laid out as 2x2 pixels. The CPU's own in libtorch 1.13
/// is slow, and wrong in bfloat16, where it runs as if it were not transposed.
class Doubling final : public nn::ConvTranspose2dImpl {
 public:
  Doubling(int64_t in, int64_t out)
      : ConvTranspose2dImpl(nn::ConvTranspose2dOptions(in, out, 2).stride(2)) {
    he_uniform_(weight);
  }

  at::Tensor forward(const at::Tensor& x) {
    const int64_t in = weight.size(0), out = weight.size(1);
    const auto kernel = weight.permute({1, 2, 3, 0}).reshape({4 * out, in, 1, 1});
    const auto four = at::conv2d(x, kernel, bias.repeat_interleave(4));
    return at::pixel_shuffle(four, 2);
  }
};

nn::Sequential heat_map(int64_t in, bool bias) {
  const int64_t inner = in / 4;
  nn::Conv2d first(nn::Conv2dOptions(in, inner, 3).padding(1).bias(bias));
  he_uniform_(first->weight);
  const auto relu = nn::ReLUOptions(/*inplace=*/true);
  return nn::Sequential(first, nn::BatchNorm2d(inner), nn::ReLU(relu),
                        std::make_shared<Doubling>(inner, inner), nn::BatchNorm2d(inner),
                        nn::ReLU(relu), std::make_shared<Doubling>(inner, 1));
}

class DbHead final : public Model {
 public:
  DbHead(int64_t in_channels, const HeadSpec& spec, StepFunction step)
      : k_(spec.k), step_(step), segm_(register_module("segm", heat_map(in_channels, spec.bias))) {
    if (spec.adaptive) thresh_ = register_module("thresh", heat_map(in_channels, spec.bias));
  }

  at::Tensor forward(at::Tensor features) override {
    const at::Tensor binary = probability(segm_, features);
    if (thresh_.is_empty() || !is_training()) return binary;
    const at::Tensor thresh = probability(thresh_, features);
    const at::Tensor distance =
        step_ == StepFunction::kPaper ? k_ * (binary - thresh) : k_ * binary - thresh;
    return at::cat({binary, thresh, at::sigmoid(distance)}, 1);
  }

 private:
  // Always in float32: near 1 a bfloat16 rounds to 1, and a loss takes log(1 - p).
  static at::Tensor probability(nn::Sequential& branch, const at::Tensor& features) {
    return at::sigmoid(as_full_precision(branch->forward(features)));
  }

  double k_;
  StepFunction step_;
  nn::Sequential segm_;
  nn::Sequential thresh_{nullptr};
};

}  // namespace

std::shared_ptr<Model> make_cls_head(int64_t in_channels, int64_t num_classes) {
  if (in_channels < 1 || num_classes < 1) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("ClsHead: num_classes is {} and in_channels {}; both are at least 1",
                            num_classes, in_channels));
  }
  return std::make_shared<ClsHead>(in_channels, num_classes);
}

std::shared_ptr<Model> make_ctc_head(int64_t in_channels, const HeadSpec& spec) {
  check_ctc_head(spec);
  return std::make_shared<CtcHead>(in_channels, spec);
}

std::shared_ptr<Model> make_db_head(int64_t in_channels, const HeadSpec& spec, StepFunction step) {
  return std::make_shared<DbHead>(in_channels, spec, step);
}

}  // namespace lockstep::inline internal
