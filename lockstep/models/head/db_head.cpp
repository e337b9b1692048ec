#include "lockstep/models/head/db_head.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/conv_transpose2d.h>
#include <ATen/ops/sigmoid.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>

#include "lockstep/models/layers.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;

/// Twice the rows and columns. On the CPU libtorch has no bfloat16 for it (1.13 takes it for a
/// convolution of other shapes), so it computes in float32 there and gives what it was given.
class DoublingImpl final : public nn::ConvTranspose2dImpl {
 public:
  DoublingImpl(int64_t in, int64_t out)
      : nn::ConvTranspose2dImpl(nn::ConvTranspose2dOptions(in, out, 2).stride(2)) {
    he_uniform_(weight);
  }
  at::Tensor forward(const at::Tensor& x) {
    if (!x.is_cpu() || x.scalar_type() != at::kBFloat16) {
      return nn::ConvTranspose2dImpl::forward(x);
    }
    return at::conv_transpose2d(x.to(at::kFloat), weight.to(at::kFloat), bias.to(at::kFloat), 2)
        .to(at::kBFloat16);
  }
};
TORCH_MODULE(Doubling);

nn::Sequential heat_map(int64_t in, bool bias) {
  const int64_t inner = in / 4;
  nn::Conv2d first(nn::Conv2dOptions(in, inner, 3).padding(1).bias(bias));
  he_uniform_(first->weight);
  const auto relu = nn::ReLUOptions(/*inplace=*/true);
  return nn::Sequential(first, nn::BatchNorm2d(inner), nn::ReLU(relu), Doubling(inner, inner),
                        nn::BatchNorm2d(inner), nn::ReLU(relu), Doubling(inner, 1), nn::Sigmoid());
}

class DbHead final : public Model {
 public:
  DbHead(int64_t in_channels, const HeadSpec& spec, StepFunction step)
      : k_(spec.k), step_(step), segm_(register_module("segm", heat_map(in_channels, spec.bias))) {
    if (spec.adaptive) thresh_ = register_module("thresh", heat_map(in_channels, spec.bias));
  }

  at::Tensor forward(at::Tensor features) override {
    const at::Tensor binary = segm_->forward(features);
    if (thresh_.is_empty() || !is_training()) return binary;
    const at::Tensor thresh = thresh_->forward(features);
    const at::Tensor distance =
        step_ == StepFunction::kPaper ? k_ * (binary - thresh) : k_ * binary - thresh;
    return at::cat({binary, thresh, at::sigmoid(distance)}, 1);
  }

 private:
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
