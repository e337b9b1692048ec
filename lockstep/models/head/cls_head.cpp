#include "lockstep/models/head/cls_head.h"

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <fmt/format.h>
#include <torch/nn/modules/linear.h>

#include "lockstep/error.h"

namespace lockstep {
namespace {

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

}  // namespace

std::shared_ptr<Model> make_cls_head(int64_t in_channels, int64_t num_classes) {
  if (in_channels < 1 || num_classes < 1) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("ClsHead: num_classes is {} and in_channels {}; both are at least 1",
                            num_classes, in_channels));
  }
  return std::make_shared<ClsHead>(in_channels, num_classes);
}

}  // namespace lockstep
