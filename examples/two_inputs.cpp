// This program trains a network of two inputs and two outputs from C++, each with a name. Where is
// a point, and how far from the middle? Both answers have a loss of their own.

#include <lockstep/error.h>
#include <lockstep/train.h>
#include <torch/torch.h>

#include <cstdio>

namespace {

using lockstep::Tensors;

/// Points of the square, x and y as separate inputs.
class Points final : public lockstep::BatchMaker {
 public:
  explicit Points(int64_t side) {
    const auto line = torch::linspace(-1, 1, side);
    x_ = line.repeat({side}).unsqueeze(1);
    y_ = line.repeat_interleave(side).unsqueeze(1);
  }
  int64_t size() const override { return x_.size(0); }
  lockstep::Batch make(const lockstep::BatchRows& rows) const override {
    const auto indices = lockstep::indices_of(rows);
    const auto x = x_.index_select(0, indices), y = y_.index_select(0, indices);
    const auto quarter = (x.gt(0) + 2 * y.gt(0).to(torch::kLong)).squeeze(1);
    lockstep::Batch batch{.valid = rows.num_counted};
    batch.set_inputs({{"x", x}, {"y", y}});
    batch.targets = {{"quarter", quarter}, {"distance", (x * x + y * y).sqrt()}};
    return batch;
  }

 private:
  torch::Tensor x_, y_;  // (N, 1)
};

class Net final : public lockstep::Model {
 public:
  Net() {
    x_ = register_module("x", torch::nn::Linear(1, 16));
    y_ = register_module("y", torch::nn::Linear(1, 16));
    quarter_ = register_module("quarter", torch::nn::Linear(16, 4));
    distance_ = register_module("distance", torch::nn::Linear(16, 1));
  }
  /// x and y, (N, 1) each -> logits of the quarter (N, 4), distance (N, 1).
  Tensors compute(const Tensors& inputs) override {
    const auto inner = torch::tanh(x_(inputs["x"]) + y_(inputs["y"]));
    return {{"quarter", quarter_(inner)}, {"distance", distance_(inner)}};
  }

 private:
  torch::nn::Linear x_{nullptr}, y_{nullptr}, quarter_{nullptr}, distance_{nullptr};
};

int run(int argc, char** argv) {
  lockstep::Recipe recipe;
  recipe.name = "two_inputs";
  recipe.network = [](int64_t) { return std::make_shared<Net>(); };
  recipe.data = [](const lockstep::DatasetUse& use) {
    return std::make_unique<const Points>(use.training ? 32 : 18);
  };
  recipe.loss = [](const Tensors& outputs, const Tensors& targets) {
    const auto quarter = torch::cross_entropy_loss(outputs["quarter"], targets["quarter"]);
    const auto distance = torch::mse_loss(outputs["distance"], targets["distance"]);
    lockstep::log_value("quarter", quarter);
    lockstep::log_value("distance", distance);
    return quarter + distance;
  };
  recipe.log_names = {"quarter", "distance"};
  recipe.num_classes = 4;  // accuracy is that of the first output and the first target
  recipe.events.on_evaluation = [](const lockstep::EvalResult& result) {
    std::printf("right: %.3f of %ld\n", result.metric("acc"), result.samples);
  };
  recipe.settings = {"train.ckpt_save_dir=" + std::string(argc > 1 ? argv[1] : "out/two_inputs"),
                     "train.loader.batch_size=64",
                     "system.val_while_train=True",
                     "system.val_start_epoch=40",
                     "scheduler.num_epochs=40",
                     "scheduler.warmup_epochs=0",
                     "scheduler.lr=0.02",
                     "parallel.virtual_ranks=2"};
  return lockstep::train(recipe, lockstep::World::join());
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_main("two_inputs", run, argc, argv);
}
