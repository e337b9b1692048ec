#include "lockstep/models/squeeze.h"

#include <ATen/ops/hardsigmoid.h>
#include <torch/nn/modules/conv.h>

namespace lockstep {
namespace {

namespace nn = torch::nn;

class Squeeze final : public Model {
 public:
  explicit Squeeze(int64_t channels)
      : conv1_(register_module("conv1", nn::Conv2d(channels, channels / 4, 1))),
        conv2_(register_module("conv2", nn::Conv2d(channels / 4, channels, 1))) {}

  at::Tensor forward(at::Tensor x) override {
    const at::Tensor mean = x.mean({2, 3}, /*keepdim=*/true);
    return x * at::hardsigmoid(conv2_->forward(conv1_->forward(mean).relu_()));
  }

 private:
  nn::Conv2d conv1_;
  nn::Conv2d conv2_;
};

}  // namespace

std::shared_ptr<Model> make_squeeze(int64_t channels) {
  return std::make_shared<Squeeze>(channels);
}

}  // namespace lockstep
