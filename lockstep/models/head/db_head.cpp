#include "lockstep/models/head/db_head.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/pixel_shuffle.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/sigmoid.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>

#include "lockstep/models/layers.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;

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

std::shared_ptr<Model> make_db_head(int64_t in_channels, const HeadSpec& spec, StepFunction step) {
  return std::make_shared<DbHead>(in_channels, spec, step);
}

}  // namespace lockstep
