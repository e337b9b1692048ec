// A data set, a network, a loss and a metric of one's own under the command line of
// `lockstep train`; examples/own_parts.yaml names them. And a loss that builds on a built-in one,
// and a transform of pictures.
//
// Points of the plane lie on two spirals: which of the two? As a shared library, this file works
// with the ready program, too: lockstep train --plugin libown_parts_plugin.so.

#include <lockstep/train.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>

namespace {

using lockstep::Batch;
using lockstep::BatchRows;
using lockstep::EvalResult;
using lockstep::Picture;
using lockstep::RandomNumbers;
using lockstep::Section;

class Spirals final : public lockstep::BatchMaker {
 public:
  Spirals(int64_t points, double turns, bool training) {
    const auto index = torch::arange(points, torch::kFloat64);
    const auto label = torch::arange(points).remainder(2);
    // Points of evaluation lie between those of training.
    const auto radius = (index + (training ? 0.0 : 0.5)) / static_cast<double>(points);
    const auto angle = radius * turns * 2 * M_PI + label * M_PI;
    points_ = torch::stack({radius * angle.cos(), radius * angle.sin()}, 1).to(torch::kFloat32);
    labels_ = label;
  }
  int64_t size() const override { return labels_.size(0); }
  Batch make(const BatchRows& rows) const override {
    const auto indices = lockstep::indices_of(rows);
    return {points_.index_select(0, indices), {labels_.index_select(0, indices)}, rows.num_counted};
  }

 private:
  torch::Tensor points_;  // (N, 2)
  torch::Tensor labels_;  // (N): 0 or 1
};

class Layers final : public lockstep::Model {
 public:
  Layers(int64_t width, int64_t classes) {
    layers_ = register_module(
        "layers", torch::nn::Sequential(torch::nn::Linear(2, width), torch::nn::Tanh(),
                                        torch::nn::Linear(width, width), torch::nn::Tanh(),
                                        torch::nn::Linear(width, classes)));
  }
  torch::Tensor forward(torch::Tensor input) override { return layers_->forward(input); }

 private:
  torch::nn::Sequential layers_{nullptr};
};

/// Lin et al., ICCV 2017: samples that are right already count less.
torch::Tensor focal_loss(const torch::Tensor& logits, const torch::Tensor& labels, double gamma) {
  const auto log_p = torch::log_softmax(logits, 1).gather(1, labels.unsqueeze(1)).squeeze(1);
  return (-(1 - log_p.exp()).pow(gamma) * log_p).mean();
}

class Hits final : public lockstep::Metric {
 public:
  std::vector<std::string> metric_names() const override { return {"hits"}; }
  size_t num_sums() const override { return 2; }
  std::vector<double> sums(const lockstep::Tensors& outputs, const Batch& batch) override {
    const auto right = outputs[0].argmax(1).eq(batch.targets[0]).narrow(0, 0, batch.valid);
    return {static_cast<double>(batch.valid), right.sum().item<double>()};
  }
  EvalResult result(std::span<const double> sums) override {
    EvalResult result;
    result.samples = static_cast<int64_t>(sums[0]);
    result.metrics = {{"hits", sums[1] / std::max(1.0, sums[0])}};
    return result;
  }
};

const lockstep::DatasetPart kSpirals("spirals", "points on two spirals", [](Section& settings) {
  int64_t points = 512;
  double turns = 1;
  settings.read("points", points, {2, 1 << 20}, "of both spirals");
  settings.read("turns", turns, {0.1, 10}, "of each spiral");
  return [=](const lockstep::DatasetUse& use) {
    return std::make_unique<const Spirals>(points, turns, use.training);
  };
});

const lockstep::NetworkPart kLayers("layers", "three linear layers", [](Section& settings) {
  int64_t width = 32;
  settings.read("width", width, {1, 4096}, "of the inner layers");
  return [=](int64_t classes) { return std::make_shared<Layers>(width, classes); };
});

const lockstep::LossPart kFocal("focal", "focal loss of the first target", [](Section& settings) {
  double gamma = 2;
  settings.read("gamma", gamma, {0, 10}, "0: cross entropy");
  return [=](const lockstep::Tensors& outputs, const lockstep::Tensors& targets) {
    return focal_loss(outputs[0], targets[0], gamma);
  };
});

/// Pereyra et al., 2017: a built-in loss, less the entropy of the scores.
const lockstep::LossPart kUnsure("less_sure", "cross entropy less entropy", [](Section& settings) {
  double weight = 0.1;
  settings.read("weight", weight, {0, 10}, "of the entropy");
  const auto built_in = lockstep::losses().read("CrossEntropySmooth", settings);
  return [=](const lockstep::Tensors& outputs, const lockstep::Tensors& targets) {
    const auto log_p = torch::log_softmax(outputs[0], 1);
    const auto entropy = -(log_p.exp() * log_p).sum(1).mean();
    return built_in.function(outputs, targets) - weight * entropy;
  };
});

const lockstep::MetricPart kHits("hits", "part of the samples that are right", [](Section&) {
  return [](int64_t) { return std::make_unique<Hits>(); };
});

const lockstep::TransformPart kNoise("RandomNoise", "noise on each byte", [](Section& settings) {
  int64_t most = 16;
  settings.read("most", most, {1, 255}, "of 255");
  return [=](Picture& picture, RandomNumbers& random) {
    for (uint8_t& byte : picture.bytes()) {
      const int64_t noisy = byte + random.below(2 * most + 1) - most;
      byte = static_cast<uint8_t>(std::clamp<int64_t>(noisy, 0, 255));
    }
  };
});

}  // namespace

int main(int argc, char** argv) {
  return lockstep::train_main(argc, argv);
}
