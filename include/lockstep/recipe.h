#pragma once
// A Recipe has all parts of a training, in C++. train() of train.h runs one, and a YAML file names
// one as `model.type` where it is registered as a task. Changes of its types raise kPartVersion,
// too.
//
// Use:
//   const lockstep::TaskPart kPoints("points", "moves points", [](lockstep::Section& settings) {
//     double shift = 1;
//     settings.read("shift", shift, {0, 9}, "of each point");
//     lockstep::Recipe recipe;
//     recipe.network = [](int64_t) { return std::make_shared<Net>(); };
//     recipe.data = [](const lockstep::DatasetUse& use) { return std::make_unique<Points>(use); };
//     recipe.loss = my_loss;
//     recipe.settings = {"scheduler.lr=0.01", "scheduler.num_epochs=9"};
//     return recipe;
//   });
//
// Threads: as registry.h and train.h say of parts and events.
// Cost: a recipe holds functions; the trainer makes network and data when the run begins.
// Errors: kInvalidArgument for a recipe without a network, and for parts that exclude each other.

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

/// Makes an optimizer for the parameters of `network` that need a gradient. A group's rate of 0 is
/// the schedule's. Another one is that at scheduler.lr, and follows the schedule in proportion: to
/// change scheduler.lr then changes nothing. Checkpoints hold the state of libtorch's optimizers
/// (training_checkpoint.h).
using OptimizerMaker =
    std::function<std::unique_ptr<torch::optim::Optimizer>(torch::nn::Module& network)>;

/// An optimizer of its own for a part of the network.
struct RecipeOptimizer {
  std::string part;     ///< A module of the network by its name: "generator".
  OptimizerMaker make;  ///< Gets that module.
};

struct Recipe {
  /// In logs, checkpoints and the default folder of results. A registered task has its own.
  std::string name = "recipe";
  NetworkMaker network;
  /// Called for training, and for evaluation if there is one. Without it settings name data sets:
  /// "train.dataset.type=ImageFolderDataset", "train.dataset.data_dir=photos".
  DatasetMaker data{};
  LossFunction loss{};                 ///< Default: cross entropy of the first target.
  ItemCount num_items{};               ///< Of `loss`: what it is a mean over; default: samples.
  MetricMaker metric{};                ///< Default: accuracy of the first target.
  std::string main_indicator = "acc";  ///< Of the metric: ranks the checkpoints.
  int64_t num_classes = 0;             ///< For `network` and `metric`; of a built-in data set.
  OptimizerMaker optimizer{};          ///< Default: that of the settings.
  /// In the place of `loss` and `optimizer`: several optimizers, and what a step does with them.
  /// Each parameter to train belongs to one part. metrics.jsonl has `loss_PART` of each part, and
  /// as `loss` their sum. Needs amp_level O0 or O1, and comm_hook none, fp16 or bf16.
  std::vector<RecipeOptimizer> optimizers{};
  std::function<void(TrainingStep& step)> training_step{};
  std::vector<std::string> log_names{};  ///< Of what loss or training_step give to log_value().
  RecipeEvents events{};
  /// "key=value" as after -o of `lockstep train`; the keys stand in docs/reference/settings.md.
  /// Evaluation: "system.val_while_train=True". Defaults beside those of the page:
  /// train.ckpt_save_dir=out/NAME, train.loader.batch_size=32, eval.loader.batch_size=32. As with
  /// a TaskPart, keys of a part that the recipe has are refused.
  std::vector<std::string> settings{};
};

Registry<Recipe>& tasks();

/// `model.type`: a task, beside the built-in cls, det and rec. `read` gets the section `model`,
/// whose keys `name`, `pretrained` and `resume` are the trainer's. It may be called several times.
///
/// What the recipe leaves open is read as for `cls`: train.dataset and eval.dataset, loss, metric,
/// optimizer. A section whose part the recipe has is refused once it has keys. Of its own metric
/// only `metric.main_indicator` may be set, of its own optimizers `optimizer.groups`. Without
/// Recipe::num_classes `postprocess` and `predict` are refused, too. Recipe::settings are defaults,
/// which the file and -o replace.
using TaskPart = RegisteredPart<Recipe, tasks>;

}  // namespace lockstep
