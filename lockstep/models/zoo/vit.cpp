#include "lockstep/models/zoo/families.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/normalization.h>

#include <cmath>

#include "lockstep/error.h"
#include "lockstep/models/zoo/parts.h"

namespace lockstep::inline internal {
namespace {

namespace nn = torch::nn;

// Legend of the shapes in this file: L patches and the token of the class, D elements of each,
// I heads of D / I elements.

constexpr int64_t kPatch = 16;
constexpr int64_t kVitBlocks = 12;

struct VitShape {
  int64_t width;  ///< D.
  int64_t heads;
  int64_t inner;  ///< Width between the two linear layers of a block.
};

nn::LayerNorm vit_norm(int64_t width) {
  return nn::LayerNorm(nn::LayerNormOptions(std::vector<int64_t>{width}).eps(1e-6));
}

/// Attention of all patches to all. (N, L, D) -> the same. Names and initial values are those of
/// PyTorch's MultiheadAttention.
class SelfAttention final : public Model {
 public:
  SelfAttention(const VitShape& shape, double dropout)
      : heads_(shape.heads),
        dropout_(dropout),
        in_weight_(register_parameter("in_proj_weight", at::empty({3 * shape.width, shape.width}))),
        in_bias_(register_parameter("in_proj_bias", at::zeros({3 * shape.width}))),
        out_(register_module("out_proj", nn::Linear(shape.width, shape.width))) {
    nn::init::xavier_uniform_(in_weight_);
    nn::init::zeros_(out_->bias);
  }

  at::Tensor forward(at::Tensor x) override {
    const int64_t rows = x.size(0), patches = x.size(1), of_head = x.size(2) / heads_;
    // (3, N, I, L, D / I)
    const at::Tensor parts = at::linear(x, in_weight_, in_bias_)
                                 .reshape({rows, patches, 3, heads_, of_head})
                                 .permute({2, 0, 3, 1, 4});
    const at::Tensor query = parts.select(0, 0) / std::sqrt(static_cast<double>(of_head));
    const at::Tensor scores =
        at::matmul(query, parts.select(0, 1).transpose(-2, -1)).softmax(-1);  // (N, I, L, L)
    const at::Tensor seen =
        at::matmul(at::dropout(scores, dropout_, is_training()), parts.select(0, 2));
    return out_->forward(seen.transpose(1, 2).flatten(2));
  }

 private:
  int64_t heads_;
  double dropout_;
  at::Tensor in_weight_;
  at::Tensor in_bias_;
  nn::Linear out_;
};

/// Linear "0", GELU, dropout, linear "3", dropout.
class VitMlp final : public Model {
 public:
  VitMlp(const VitShape& shape, double dropout)
      : dropout_(dropout),
        first_(register_module("0", nn::Linear(shape.width, shape.inner))),
        last_(register_module("3", nn::Linear(shape.inner, shape.width))) {
    for (auto& linear : {first_, last_}) {
      nn::init::xavier_uniform_(linear->weight);
      nn::init::normal_(linear->bias, 0, 1e-6);
    }
  }

  at::Tensor forward(at::Tensor x) override {
    x = at::dropout(at::gelu(first_->forward(x)), dropout_, is_training());
    return at::dropout(last_->forward(x), dropout_, is_training());
  }

 private:
  double dropout_;
  nn::Linear first_;
  nn::Linear last_;
};

class VitBlock final : public Model {
 public:
  VitBlock(const VitShape& shape, double dropout, double attention_dropout)
      : dropout_(dropout),
        norm1_(register_module("ln_1", vit_norm(shape.width))),
        attention_(register_module("self_attention",
                                   std::make_shared<SelfAttention>(shape, attention_dropout))),
        norm2_(register_module("ln_2", vit_norm(shape.width))),
        mlp_(register_module("mlp", std::make_shared<VitMlp>(shape, dropout))) {}

  at::Tensor forward(at::Tensor x) override {
    const at::Tensor seen = attention_->forward(norm1_->forward(x));
    x = at::dropout(seen, dropout_, is_training()) + x;
    return x + mlp_->forward(norm2_->forward(x));
  }

 private:
  double dropout_;
  nn::LayerNorm norm1_;
  std::shared_ptr<Model> attention_;
  nn::LayerNorm norm2_;
  std::shared_ptr<Model> mlp_;
};

/// (N, L, D) -> the same.
class VitEncoder final : public Model {
 public:
  VitEncoder(const VitShape& shape, int64_t patches, const ZooSettings& settings)
      : dropout_(*settings.dropout),
        positions_(register_parameter("pos_embedding", at::empty({1, patches, shape.width}))) {
    nn::init::normal_(positions_, 0, 0.02);
    layers_ = register_module("layers", std::make_shared<Chain>());
    for (int64_t i = 0; i < kVitBlocks; ++i) {
      layers_->add(fmt::format("encoder_layer_{}", i),
                   std::make_shared<VitBlock>(shape, dropout_, *settings.attention_dropout));
    }
    norm_ = register_module("ln", vit_norm(shape.width));
  }

  at::Tensor forward(at::Tensor x) override {
    x = at::dropout(x + positions_, dropout_, is_training());
    return norm_->forward(layers_->forward(std::move(x)));
  }

 private:
  double dropout_;
  at::Tensor positions_;
  std::shared_ptr<Chain> layers_;
  nn::LayerNorm norm_{nullptr};
};

/// Linear "head". (N, D) -> (N, K).
class VitHead final : public Model {
 public:
  VitHead(int64_t width, int64_t classes)
      : head_(register_module("head", nn::Linear(width, classes))) {
    nn::init::zeros_(head_->weight);
    nn::init::zeros_(head_->bias);
  }
  at::Tensor forward(at::Tensor x) override { return head_->forward(x); }

 private:
  nn::Linear head_;
};

class VisionTransformer final : public Model {
 public:
  VisionTransformer(const VitShape& shape, int64_t classes, const ZooSettings& settings)
      : side_(*settings.image_size),
        class_token_(register_parameter("class_token", at::zeros({1, 1, shape.width}))),
        patches_(register_module(
            "conv_proj", nn::Conv2d(nn::Conv2dOptions(3, shape.width, kPatch).stride(kPatch)))) {
    if (side_ % kPatch != 0) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("image_size must be a multiple of {}, not {}", kPatch, side_));
    }
    const int64_t patches = (side_ / kPatch) * (side_ / kPatch);
    encoder_ =
        register_module("encoder", std::make_shared<VitEncoder>(shape, patches + 1, settings));
    heads_ = register_module("heads", std::make_shared<VitHead>(shape.width, classes));
    cut_normal_(patches_->weight, std::sqrt(1.0 / (3 * kPatch * kPatch)));
    nn::init::zeros_(patches_->bias);
  }

  at::Tensor forward(at::Tensor x) override {
    check_size(x);
    const at::Tensor patches = patches_->forward(x).flatten(2).transpose(1, 2);  // (N, L - 1, D)
    const at::Tensor tokens = class_token_.expand({x.size(0), 1, patches.size(2)});
    const at::Tensor seen = encoder_->forward(at::cat({tokens, patches}, 1));
    return heads_->forward(seen.select(1, 0));
  }

 private:
  void check_size(const at::Tensor& x) const {
    if (x.size(2) == side_ && x.size(3) == side_) return;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the network takes pictures of {0} x {0} pixels, not {1} x {2}: its "
                            "setting image_size, or the transforms, must be another",
                            side_, x.size(3), x.size(2)));
  }

  int64_t side_;
  at::Tensor class_token_;
  nn::Conv2d patches_;
  std::shared_ptr<Model> encoder_;
  std::shared_ptr<Model> heads_;
};

ZooNetwork transformer_of(const std::string& name, const std::string& about,
                          const VitShape& shape) {
  return {name,
          about,
          {.dropout = 0, .attention_dropout = 0, .image_size = 224},
          [shape](const ZooSettings& chosen, int64_t classes) {
            return std::make_shared<VisionTransformer>(shape, classes, chosen);
          }};
}

}  // namespace

std::vector<ZooNetwork> vision_transformers() {
  return {transformer_of("vit_b_16", "86.6 million parameters with 1000 classes", {768, 12, 3072}),
          transformer_of("vit_s_16", "22.1 million parameters with 1000 classes; timm's small one",
                         {384, 6, 1536})};
}

}  // namespace lockstep::inline internal
