#include "lockstep/models/zoo/families.h"

#include <ATen/ops/dropout.h>
#include <torch/nn/init.h>

#include <array>
#include <cmath>

#include "lockstep/models/zoo/parts.h"

namespace lockstep::inline internal {
namespace {

namespace nn = torch::nn;

/// A row of the paper's table: `blocks` blocks, of which the first has the stride.
struct EfficientRow {
  int64_t expands;
  int64_t kernel;
  int64_t stride;
  int64_t out;
  int64_t blocks;
};

constexpr std::array<EfficientRow, 7> kB0Rows = {{{1, 3, 1, 16, 1},
                                                  {6, 3, 2, 24, 2},
                                                  {6, 5, 2, 40, 2},
                                                  {6, 3, 2, 80, 3},
                                                  {6, 5, 1, 112, 3},
                                                  {6, 5, 2, 192, 4},
                                                  {6, 3, 1, 320, 1}}};
constexpr auto kSilu = Activation::kSilu;

/// Widens, filters each channel, weighs the channels, and narrows again.
class MbConv final : public Model {
 public:
  MbConv(int64_t in, const EfficientRow& row, int64_t stride, double drops)
      : adds_input_(stride == 1 && in == row.out),
        drops_(drops),
        block_(register_module("block", std::make_shared<Chain>())) {
    const int64_t wide = in * row.expands;
    if (wide != in) block_->add(std::make_shared<ConvNorm>(in, wide, activated({})));
    block_->add(std::make_shared<ConvNorm>(
        wide, wide, activated({.kernel = row.kernel, .stride = stride, .groups = wide})));
    block_->add(std::make_shared<SqueezeExcitation>(wide, in / 4, kSilu, Gate::kSigmoid));
    block_->add(std::make_shared<ConvNorm>(wide, row.out, ConvNormOptions{}));
  }

  at::Tensor forward(at::Tensor x) override {
    const at::Tensor result = block_->forward(x);
    return adds_input_ ? drop_rows(result, drops_, is_training()) + x : result;
  }

 private:
  static ConvNormOptions activated(ConvNormOptions options) {
    options.activation = kSilu;
    return options;
  }

  bool adds_input_;
  double drops_;
  std::shared_ptr<Chain> block_;
};

/// Dropout, linear "1".
class EfficientClassifier final : public Model {
 public:
  EfficientClassifier(int64_t in, int64_t classes, double dropout)
      : dropout_(dropout), last_(register_module("1", nn::Linear(in, classes))) {}

  at::Tensor forward(at::Tensor x) override {
    return last_->forward(at::dropout(x, dropout_, is_training()));
  }

  void init() {
    const double bound = 1 / std::sqrt(static_cast<double>(last_->weight.size(0)));
    nn::init::uniform_(last_->weight, -bound, bound);
    nn::init::zeros_(last_->bias);
  }

 private:
  double dropout_;
  nn::Linear last_;
};

class EfficientNet final : public Model {
 public:
  EfficientNet(int64_t classes, const ZooSettings& settings)
      : features_(register_module("features", std::make_shared<Chain>())) {
    int64_t channels = 32, total = 0, block = 0;
    for (const EfficientRow& row : kB0Rows) total += row.blocks;
    features_->add(std::make_shared<ConvNorm>(
        3, channels, ConvNormOptions{.kernel = 3, .stride = 2, .activation = kSilu}));
    for (const EfficientRow& row : kB0Rows) {
      auto stage = std::make_shared<Chain>();
      for (int64_t i = 0; i < row.blocks; ++i, ++block) {
        const double drops =
            *settings.stochastic_depth * static_cast<double>(block) / static_cast<double>(total);
        stage->add(std::make_shared<MbConv>(channels, row, i == 0 ? row.stride : 1, drops));
        channels = row.out;
      }
      features_->add(std::move(stage));
    }
    features_->add(
        std::make_shared<ConvNorm>(channels, 4 * channels, ConvNormOptions{.activation = kSilu}));
    classifier_ = register_module("classifier", std::make_shared<EfficientClassifier>(
                                                    4 * channels, classes, *settings.dropout));
    init_convolutions(*features_);
    classifier_->init();
  }

  at::Tensor forward(at::Tensor x) override {
    return classifier_->forward(mean_of_pixels(features_->forward(std::move(x))));
  }

 private:
  std::shared_ptr<Chain> features_;
  std::shared_ptr<EfficientClassifier> classifier_;
};

}  // namespace

std::vector<ZooNetwork> efficientnets() {
  return {{"efficientnet_b0",
           "5.3 million parameters with 1000 classes",
           {.dropout = 0.2, .stochastic_depth = 0.2},
           [](const ZooSettings& chosen, int64_t classes) {
             return std::make_shared<EfficientNet>(classes, chosen);
           }}};
}

}  // namespace lockstep::inline internal
