#pragma once
// Training from C++, without a file: a recipe holds network, data and loss, and train() runs it as
// `lockstep train` would, on one process or on many.
//
//   lockstep::Recipe recipe;
//   recipe.network = [](int64_t) { return std::make_shared<Net>(); };
//   recipe.data = [](const lockstep::DatasetUse& use) { return std::make_unique<Points>(use); };
//   recipe.loss = [](auto& outputs, auto& targets) { return at::mse_loss(outputs[0], targets[0]);
//   }; recipe.settings = {"scheduler.lr=0.01", "train.loader.batch_size=16",
//   "scheduler.num_epochs=9"}; return lockstep::train(recipe, lockstep::World::join());

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/batch.h"
#include "lockstep/metric.h"
#include "lockstep/registry.h"
#include "lockstep/world.h"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace lockstep {

/// A micro-step that is done. Numbers are means over the ranks.
struct StepFacts {
  int64_t epoch = 1;          ///< From 1.
  int64_t step_in_epoch = 1;  ///< Micro-steps, from 1.
  int64_t steps_per_epoch = 1;
  int64_t optimizer_steps = 0;  ///< Of the whole run so far.
  double loss = 0;
  double lr = 0;
};

/// Called on every rank, at the same points of the run. An exception ends the run.
struct RecipeEvents {
  std::function<void(int64_t epoch)> on_epoch_begin{};
  /// The gradients are averaged over the ranks; clipping and the optimizer's step come next. What
  /// it changes must be the same on all ranks.
  std::function<void(Model& network)> before_update{};
  std::function<void(const StepFacts& step)> on_step{};
  std::function<void(int64_t epoch, double loss)> on_epoch{};
  std::function<void(const EvalResult& result)> on_evaluation{};
  std::function<void()> on_end{};  ///< Not after an error.
  std::function<void(const std::string& why)> on_error{};
};

/// Makes an optimizer for the parameters of `network` that need a gradient. Groups may have rates
/// of their own: each follows the schedule, in proportion to scheduler.lr. Checkpoints hold the
/// state of libtorch's optimizers (training_checkpoint.h).
using OptimizerMaker =
    std::function<std::unique_ptr<torch::optim::Optimizer>(torch::nn::Module& network)>;

struct Recipe {
  std::string name = "recipe";  ///< In logs, checkpoints and the default folder of results.
  NetworkMaker network;
  DatasetMaker data;                   ///< Called for training, and for evaluation if there is one.
  LossFunction loss{};                 ///< Default: cross entropy of the first target.
  MetricMaker metric{};                ///< Default: accuracy of the first target.
  std::string main_indicator = "acc";  ///< Of the metric: ranks the checkpoints.
  int64_t num_classes = 0;             ///< For `network` and `metric`.
  OptimizerMaker optimizer{};          ///< Default: that of the settings.
  RecipeEvents events{};
  /// "key=value" as after -o of `lockstep train`; the keys stand in docs/reference/settings.md.
  /// Evaluation: "system.val_while_train=True". Defaults beside those of the page:
  /// train.ckpt_save_dir=out/NAME, train.loader.batch_size=32, eval.loader.batch_size=32.
  std::vector<std::string> settings{};
};

/// Collective. Trains as the recipe says. Returns the process's exit status: 0, or 128 + the signal
/// that ended the run early. Errors: kInvalidArgument naming the setting, or the missing part of
/// the recipe; those of training.
int train(const Recipe& recipe, World world);

}  // namespace lockstep
