#include "lockstep/models/head/ctc_head.h"

#include <ATen/ops/dropout.h>
#include <ATen/ops/softmax.h>
#include <fmt/format.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/linear.h>

#include <cmath>

#include "lockstep/error.h"

namespace lockstep {
namespace {

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

}  // namespace

std::shared_ptr<Model> make_ctc_head(int64_t in_channels, const HeadSpec& spec) {
  check_ctc_head(spec);
  return std::make_shared<CtcHead>(in_channels, spec);
}

}  // namespace lockstep
