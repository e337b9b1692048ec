// The task `model.type: gan` has two networks with an optimizer each. A generator learns to make
// points that a discriminator cannot distinguish from points of a ring.
//
// As in Lightning's manual optimisation, one function is the whole step. The gradients of each
// network are averaged over all ranks, and noise depends on step and virtual rank alone. So the
// weights have the same bits on one rank and on two. gan.yaml names the task.

#include <ATen/CPUGeneratorImpl.h>
#include <lockstep/train.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace {

using lockstep::Batch;
using lockstep::BatchRows;
using lockstep::EvalResult;
using lockstep::Section;
using torch::nn::LeakyReLU;
using torch::nn::Linear;

constexpr int64_t kNoise = 4;

/// In training points of a ring, for evaluation noise.
class Points final : public lockstep::BatchMaker {
 public:
  explicit Points(const lockstep::DatasetUse& use) {
    auto generator = at::make_generator<at::CPUGeneratorImpl>(use.seed);
    const auto angle = torch::rand({2048}, generator) * 2 * M_PI;
    rows_ = use.training ? torch::stack({angle.cos(), angle.sin()}, 1)
                         : torch::randn({512, kNoise}, generator);
  }
  int64_t size() const override { return rows_.size(0); }
  Batch make(const BatchRows& rows) const override {
    return {rows_.index_select(0, lockstep::indices_of(rows)), {}, rows.num_counted};
  }

 private:
  torch::Tensor rows_;
};

torch::nn::Sequential layers(int64_t in, int64_t width, int64_t out) {
  return torch::nn::Sequential(Linear(in, width), LeakyReLU(), Linear(width, width), LeakyReLU(),
                               Linear(width, out));
}

struct Gan final : lockstep::Model {
  torch::nn::Sequential generator, discriminator;

  explicit Gan(int64_t width) {
    generator = register_module("generator", layers(kNoise, width, 2));
    discriminator = register_module("discriminator", layers(2, width, 1));
  }

  /// For evaluation: noise (N, 4) -> points (N, 2).
  torch::Tensor forward(torch::Tensor noise) override { return generator->forward(noise); }

  torch::Tensor make_like(const torch::Tensor& points) {
    return generator->forward(torch::randn({points.size(0), kNoise}));
  }
  /// The loss of calling points real, or made.
  torch::Tensor loss(const torch::Tensor& points, bool real) {
    const auto logits = discriminator->forward(points);
    return torch::softplus(real ? -logits : logits).mean();
  }
};

void train_both(lockstep::TrainingStep& step) {
  auto& gan = step.network<Gan>();
  step.optimize("discriminator", [&](const Batch& batch) {
    return gan.loss(batch.images, true) + gan.loss(gan.make_like(batch.images), false);
  });
  step.optimize("generator",
                [&](const Batch& batch) { return gan.loss(gan.make_like(batch.images), true); });
}

/// The mean distance of generated points from the ring: the checkpoint with the least is the best.
class RingDistance final : public lockstep::Metric {
 public:
  std::vector<std::string> metric_names() const override { return {"distance"}; }
  std::vector<std::string> lower_is_better() const override { return {"distance"}; }
  size_t num_sums() const override { return 2; }
  std::vector<double> sums(const lockstep::Tensors& outputs, const Batch& batch) override {
    const auto error = (outputs[0].norm(2, 1) - 1).abs().narrow(0, 0, batch.valid);
    return {static_cast<double>(batch.valid), error.sum().item<double>()};
  }
  EvalResult result(std::span<const double> sums) override {
    EvalResult result;
    result.samples = static_cast<int64_t>(sums[0]);
    result.metrics = {{"distance", sums[1] / std::max(1.0, sums[0])}};
    return result;
  }
};

std::unique_ptr<torch::optim::Optimizer> adam(torch::nn::Module& module) {
  // The rate 0 stands for that of the schedule.
  return std::make_unique<torch::optim::Adam>(module.parameters(),
                                              torch::optim::AdamOptions(0).betas({0.5, 0.9}));
}

lockstep::Recipe gan(int64_t width) {
  lockstep::Recipe recipe;
  recipe.network = [=](int64_t) { return std::make_shared<Gan>(width); };
  recipe.data = [](const lockstep::DatasetUse& use) { return std::make_unique<const Points>(use); };
  recipe.optimizers = {{"discriminator", adam}, {"generator", adam}};
  recipe.training_step = train_both;
  recipe.metric = [](int64_t) { return std::make_unique<RingDistance>(); };
  recipe.main_indicator = "distance";
  recipe.events.on_evaluation = [](const EvalResult& result) {
    std::printf("distance: %.3f of %ld points\n", result.metric("distance"), result.samples);
  };
  recipe.settings = {
      "train.ckpt_save_epochs=40", "train.loader.batch_size=64", "system.val_while_train=True",
      "system.val_start_epoch=40", "system.log_interval=1000",   "scheduler.num_epochs=40",
      "scheduler.warmup_epochs=0", "scheduler.lr=0.001",         "parallel.virtual_ranks=2"};
  return recipe;
}

const lockstep::TaskPart kGan("gan", "points of a ring, by two networks", [](Section& settings) {
  int64_t width = 64;
  settings.read("width", width, {1, 4096}, "of the inner layers");
  return gan(width);
});

}  // namespace

int main(int argc, char** argv) {
  return lockstep::train_main(argc, argv);
}
