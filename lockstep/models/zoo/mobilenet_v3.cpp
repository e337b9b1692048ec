#include "lockstep/models/zoo/families.h"

#include <ATen/ops/dropout.h>
#include <ATen/ops/hardswish.h>
#include <torch/nn/init.h>

#include "lockstep/models/zoo/parts.h"

namespace lockstep::inline internal {
namespace {

namespace nn = torch::nn;

/// A row of the paper's tables.
struct MobileRow {
  int64_t kernel;
  int64_t expanded;
  int64_t out;
  bool squeezes;
  Activation activation;
  int64_t stride;
};

constexpr auto kRe = Activation::kRelu;
constexpr auto kHs = Activation::kHardswish;

const std::vector<MobileRow> kLargeRows = {
    {3, 16, 16, false, kRe, 1},  {3, 64, 24, false, kRe, 2},  {3, 72, 24, false, kRe, 1},
    {5, 72, 40, true, kRe, 2},   {5, 120, 40, true, kRe, 1},  {5, 120, 40, true, kRe, 1},
    {3, 240, 80, false, kHs, 2}, {3, 200, 80, false, kHs, 1}, {3, 184, 80, false, kHs, 1},
    {3, 184, 80, false, kHs, 1}, {3, 480, 112, true, kHs, 1}, {3, 672, 112, true, kHs, 1},
    {5, 672, 160, true, kHs, 2}, {5, 960, 160, true, kHs, 1}, {5, 960, 160, true, kHs, 1}};
const std::vector<MobileRow> kSmallRows = {
    {3, 16, 16, true, kRe, 2},  {3, 72, 24, false, kRe, 2}, {3, 88, 24, false, kRe, 1},
    {5, 96, 40, true, kHs, 2},  {5, 240, 40, true, kHs, 1}, {5, 240, 40, true, kHs, 1},
    {5, 120, 48, true, kHs, 1}, {5, 144, 48, true, kHs, 1}, {5, 288, 96, true, kHs, 2},
    {5, 576, 96, true, kHs, 1}, {5, 576, 96, true, kHs, 1}};

std::shared_ptr<Model> mobile_conv(int64_t in, int64_t out, double eps, ConvNormOptions options) {
  options.eps = eps;
  options.momentum = 0.01;
  return std::make_shared<ConvNorm>(in, out, options);
}

/// Widens, filters each channel, weighs the channels, and narrows again.
class InvertedResidual final : public Model {
 public:
  InvertedResidual(int64_t in, const MobileRow& row, double eps)
      : adds_input_(row.stride == 1 && in == row.out),
        block_(register_module("block", std::make_shared<Chain>())) {
    const int64_t wide = row.expanded;
    if (wide != in) block_->add(mobile_conv(in, wide, eps, {.activation = row.activation}));
    block_->add(mobile_conv(wide, wide, eps,
                            {.kernel = row.kernel,
                             .stride = row.stride,
                             .groups = wide,
                             .activation = row.activation}));
    if (row.squeezes) {
      const int64_t squeezed = rounded_channels(static_cast<double>(wide / 4));
      block_->add(std::make_shared<SqueezeExcitation>(wide, squeezed, kRe, Gate::kHardsigmoid));
    }
    block_->add(mobile_conv(wide, row.out, eps, {}));
  }

  at::Tensor forward(at::Tensor x) override {
    const at::Tensor result = block_->forward(x);
    return adds_input_ ? result + x : result;
  }

 private:
  bool adds_input_;
  std::shared_ptr<Chain> block_;
};

/// Linear "0", hard swish, dropout, linear "3".
class MobileClassifier final : public Model {
 public:
  MobileClassifier(int64_t in, int64_t hidden, int64_t classes, double dropout)
      : dropout_(dropout),
        first_(register_module("0", nn::Linear(in, hidden))),
        last_(register_module("3", nn::Linear(hidden, classes))) {}

  at::Tensor forward(at::Tensor x) override {
    x = first_->forward(x);
    return last_->forward(at::dropout(at::hardswish_(x), dropout_, is_training()));
  }

 private:
  double dropout_;
  nn::Linear first_;
  nn::Linear last_;
};

class MobileNetV3 final : public Model {
 public:
  MobileNetV3(const std::vector<MobileRow>& rows, int64_t hidden, int64_t classes,
              const ZooSettings& settings)
      : features_(register_module("features", std::make_shared<Chain>())) {
    const double eps = *settings.norm_eps;
    int64_t channels = 16;
    features_->add(mobile_conv(3, channels, eps, {.kernel = 3, .stride = 2, .activation = kHs}));
    for (const MobileRow& row : rows) {
      features_->add(std::make_shared<InvertedResidual>(channels, row, eps));
      channels = row.out;
    }
    features_->add(mobile_conv(channels, 6 * channels, eps, {.activation = kHs}));
    classifier_ = register_module(
        "classifier",
        std::make_shared<MobileClassifier>(6 * channels, hidden, classes, *settings.dropout));
    init_convolutions(*features_);
    for (const auto& module : classifier_->modules()) {
      if (auto* linear = module->as<nn::LinearImpl>()) {
        nn::init::normal_(linear->weight, 0, 0.01);
        nn::init::zeros_(linear->bias);
      }
    }
  }

  at::Tensor forward(at::Tensor x) override {
    return classifier_->forward(mean_of_pixels(features_->forward(std::move(x))));
  }

 private:
  std::shared_ptr<Chain> features_;
  std::shared_ptr<Model> classifier_;
};

}  // namespace

std::vector<ZooNetwork> mobilenets_v3() {
  const ZooSettings settings = {.dropout = 0.2, .norm_eps = 0.001};
  return {{"mobilenet_v3_large", "5.5 million parameters with 1000 classes", settings,
           [](const ZooSettings& chosen, int64_t classes) {
             return std::make_shared<MobileNetV3>(kLargeRows, 1280, classes, chosen);
           }},
          {"mobilenet_v3_small", "2.5 million parameters with 1000 classes", settings,
           [](const ZooSettings& chosen, int64_t classes) {
             return std::make_shared<MobileNetV3>(kSmallRows, 1024, classes, chosen);
           }}};
}

}  // namespace lockstep::inline internal
