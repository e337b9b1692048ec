#pragma once
// This header has what a training consists of, in C++: for train() of train.h, which runs a recipe.
//
// Use:
//   lockstep::Recipe recipe;
//   recipe.network = [](int64_t) { return std::make_shared<Net>(); };
//   recipe.loss = my_loss;
//   recipe.settings = {"scheduler.lr=0.01", "scheduler.num_epochs=9"};
//
// Threads: as registry.h and train.h say of parts and events.
// Cost: a recipe holds functions; the trainer makes network and data when the run begins.
// Errors: train() reports a recipe without a network or data, and parts that exclude each other.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/registry.h"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace lockstep {

class TrainingStep;

/// Makes an optimizer for the parameters of `network` that need a gradient. Groups may have rates
/// of their own: each follows the schedule, in proportion to scheduler.lr. Checkpoints hold the
/// state of libtorch's optimizers (training_checkpoint.h).
using OptimizerMaker =
    std::function<std::unique_ptr<torch::optim::Optimizer>(torch::nn::Module& network)>;

/// An optimizer of its own for a part of the network.
struct RecipeOptimizer {
  std::string part;     ///< A module of the network by its name: "generator".
  OptimizerMaker make;  ///< Gets that module.
};

struct Recipe {
  std::string name = "recipe";  ///< In logs, checkpoints and the default folder of results.
  NetworkMaker network;
  DatasetMaker data;                   ///< Called for training, and for evaluation if there is one.
  LossFunction loss{};                 ///< Default: cross entropy of the first target.
  MetricMaker metric{};                ///< Default: accuracy of the first target.
  std::string main_indicator = "acc";  ///< Of the metric: ranks the checkpoints.
  int64_t num_classes = 0;             ///< For `network` and `metric`.
  OptimizerMaker optimizer{};          ///< Default: that of the settings.
  /// In the place of `loss` and `optimizer`: several optimizers, and what a step does with them.
  /// Each parameter to train belongs to one part. metrics.jsonl has `loss_PART` of each part, and
  /// as `loss` their sum. Needs amp_level O0 or O1, and comm_hook none, fp16 or bf16.
  std::vector<RecipeOptimizer> optimizers{};
  std::function<void(TrainingStep& step)> training_step{};
  RecipeEvents events{};
  /// "key=value" as after -o of `lockstep train`; the keys stand in docs/reference/settings.md.
  /// Evaluation: "system.val_while_train=True". Defaults beside those of the page:
  /// train.ckpt_save_dir=out/NAME, train.loader.batch_size=32, eval.loader.batch_size=32.
  std::vector<std::string> settings{};
};

}  // namespace lockstep
