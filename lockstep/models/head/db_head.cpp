#include "lockstep/models/head/db_head.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/sigmoid.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>

#include "lockstep/models/layers.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;

nn::ConvTranspose2d doubling(int64_t in, int64_t out) {
  nn::ConvTranspose2d conv(nn::ConvTranspose2dOptions(in, out, 2).stride(2));
  he_uniform_(conv->weight);
  return conv;
}

nn::Sequential heat_map(int64_t in, bool bias) {
  const int64_t inner = in / 4;
  nn::Conv2d first(nn::Conv2dOptions(in, inner, 3).padding(1).bias(bias));
  he_uniform_(first->weight);
  const auto relu = nn::ReLUOptions(/*inplace=*/true);
  return nn::Sequential(first, nn::BatchNorm2d(inner), nn::ReLU(relu), doubling(inner, inner),
                        nn::BatchNorm2d(inner), nn::ReLU(relu), doubling(inner, 1), nn::Sigmoid());
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
