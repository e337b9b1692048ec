#pragma once
// This header has all for a program that trains a network of its own with Lockstep's trainer. It
// has the command line of `lockstep train`, or a Recipe without a file. Link lockstep::train.
//
// Use:
//   #include <lockstep/train.h>
//
//   const lockstep::NetworkPart kTwoConvs("two_convs", "...", read_two_convs);
//
//   int main(int argc, char** argv) { return lockstep::train_main(argc, argv); }
//
// The program runs on one process or, under any launcher, on many.
//
// Threads: one thread of a process calls train() or train_main(). Networks, losses, metrics and
// events run in it. Loader threads call BatchMaker::make() and transforms, several at once.
// Cost: an event costs its own time; each train() registers parts, and reads settings once.
// Errors: train() throws them; train_main() prints them and returns a status.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/batch.h"
#include "lockstep/model.h"
#include "lockstep/picture.h"
#include "lockstep/recipe.h"
#include "lockstep/registry.h"
#include "lockstep/world.h"

namespace lockstep {

// A Metric is computed by an evaluation. Each rank adds up its own samples, and the sums of all
// ranks give the result: it is exact on any number of ranks.
//
// Use:
//   class Error final : public lockstep::Metric {
//     std::vector<std::string> metric_names() const override { return {"error"}; }
//     std::vector<std::string> lower_is_better() const override { return {"error"}; }
//     size_t num_sums() const override { return 2; }
//     std::vector<double> sums(const lockstep::Tensors& outputs,
//                              const lockstep::Batch& batch) override;
//     lockstep::EvalResult result(std::span<const double> sums) override;
//   };

/// The result of an evaluation.
struct EvalResult {
  int64_t samples = 0;
  std::optional<double> loss{};  ///< Mean over samples, of those metrics that compute it.
  /// By name, in the order of result.log: those of Metric::metric_names().
  std::vector<std::pair<std::string, double>> metrics{};
  double seconds = 0;
  /// Samples that could not be evaluated, of all ranks.
  int64_t faults = 0;
  std::vector<std::string> lines{};     ///< For the log, of this rank.
  std::vector<std::string> warnings{};  ///< Likewise.

  /// Errors: kInvalidArgument naming the known metrics.
  double metric(const std::string& name) const;
};

/// One per rank; not thread-safe.
class Metric {
 public:
  virtual ~Metric() = default;

  /// In the order of result.log. metric.main_indicator selects the one that ranks checkpoints.
  virtual std::vector<std::string> metric_names() const = 0;
  /// Those of metric_names() of which less is better, such as an error or a perplexity; so it is of
  /// any called "loss". Best checkpoints, early stopping and reduce_on_plateau follow. Of all
  /// others more is better.
  virtual std::vector<std::string> lower_is_better() const { return {}; }
  /// Number of entries of sums().
  virtual size_t num_sums() const = 0;
  /// Sums over the first batch.valid samples of a batch (may be 0). Adding the sums of two sets of
  /// samples, entry by entry, gives those of both. `outputs`: of the network in evaluation,
  /// float32, on the CPU.
  virtual std::vector<double> sums(const Tensors& outputs, const Batch& batch) = 0;
  /// The result, without the time. The sums are equal on all ranks; rank 0's figures are the run's.
  virtual EvalResult result(std::span<const double> sums) = 0;
};

// Training from C++, without a file. A recipe (recipe.h) holds network, data and loss. train() runs
// it as `lockstep train` would, on one process or on many.
//
// Use:
//   lockstep::Recipe recipe;
//   recipe.network = [](int64_t) { return std::make_shared<Net>(); };
//   recipe.data = [](const lockstep::DatasetUse& use) { return std::make_unique<Points>(use); };
//   recipe.loss = my_loss;
//   recipe.settings = {"scheduler.lr=0.01", "scheduler.num_epochs=9"};
//   return lockstep::train(recipe, lockstep::World::join());

/// Parameters with one rate and one weight decay.
struct ParameterGroup {
  std::vector<at::Tensor> parameters;
  double lr = 0;  ///< At the peak of the schedule; 0: the schedule's.
  double weight_decay = 0;
};

/// A step of training with several optimizers: Recipe::training_step. As Lightning's manual
/// optimisation, on any number of ranks.
///
/// Use:
///   recipe.optimizers = {{"generator", make_adam}, {"discriminator", make_adam}};
///   recipe.training_step = [](lockstep::TrainingStep& step) {
///     auto& gan = step.network<Gan>();
///     step.optimize("discriminator", [&](const lockstep::Batch& batch) { return loss_d; });
///     step.optimize("generator", [&](const lockstep::Batch& batch) { return loss_g; });
///   };
class TrainingStep {
 public:
  using Loss = std::function<at::Tensor(const Batch& batch)>;

  virtual ~TrainingStep() = default;

  /// The whole network, as Recipe::network made it.
  virtual Model& model() = 0;
  template <class Net>
  Net& network() {
    return dynamic_cast<Net&>(model());
  }
  /// Optimizer steps of the run before this one: all calls of optimize() in it count as one.
  virtual int64_t number() const = 0;

  /// Trains one of Recipe::optimizers' parts: zero_grad(), `loss` and its backward(), the average
  /// of the gradients over all ranks, and the optimizer's step. `loss` returns one number, a mean
  /// over its samples. It may call all modules, as often as it likes. Only this part's parameters
  /// get gradients, and only its buffers keep their new values. It is called once for each of the
  /// rank's virtual ranks with its samples. libtorch's generator is seeded before each, so that
  /// noise drawn in it does not depend on the number of ranks.
  ///
  /// The loss of a later call may depend on the weights after an earlier one. So a loss is examined
  /// in its own call, and an earlier call's update stays. Unless such updates are left out (see
  /// below), a loss that is not finite on any rank ends the run on all of them. This is before its
  /// gradients reach the weights. The weights in memory are then those between two calls, the same
  /// on all ranks. No checkpoint is made of them: a run that resumes begins this step, or an
  /// earlier one, anew.
  ///
  /// With system.amp_level O1 `loss` computes under autocast, as Lightning's training_step does;
  /// backward() runs outside of it. O2 and O3 are refused: they cast the weights, so `loss` would
  /// have to cast all that it gives to a module.
  ///
  /// With a loss_scaler all parts share one scale, as PyTorch advises for several optimizers. It is
  /// one number in log, metrics and checkpoint; the price is that the part with the largest
  /// gradients determines it. The gradients are unscaled before RecipeEvents::before_update and
  /// clipping. Updates may be left out: see system.drop_overflow_update. Then all ranks leave out
  /// this call's update if its loss or gradients are not finite on any rank. Weights, optimizer
  /// state and, after such a loss, buffers of the part keep their values. Other calls keep their
  /// updates. The scale changes once, after the step: it shrinks if an update was left out. A step
  /// without any update does not count for number() and the schedule.
  ///
  /// With train.gradient_accumulation_steps N a step takes N batches. `loss` is called for each of
  /// them, and their gradients are added before this part's update; only the last are averaged over
  /// ranks. So the update is that of one batch of N times the size, but for batch norm. A later
  /// call sees it in all its batches. The rate is that at the first batch. RecipeEvents::on_step
  /// and the log have one report for all N.
  ///
  /// Errors: kInvalidArgument for another name, or another result of `loss`; kDiverged, which names
  /// the part, and of a loss the ranks. If such updates are left out, too many steps in a row with
  /// one end the run with kDiverged; it names their parts.
  virtual void optimize(const std::string& part, const Loss& loss) = 0;
};

/// Collective. Registers the recipe as the task of its name (see TaskPart), and trains it. Returns
/// the process's exit status: 0, or 128 + the signal that ended the run early. Errors:
/// kInvalidArgument naming the setting, or the missing part of the recipe; those of training.
int train(const Recipe& recipe, World world);

/// `lockstep train`: the body of main(). With --eval, --plan, --predict or --export as the first
/// word it is that verb. Call it first there, as start_fork_server() demands. Returns the exit
/// status: 0; 2 for bad input; 1 for other errors; 128 + the signal that ended the run. Errors are
/// printed, in one line.
int train_main(int argc, char** argv);

/// Calls `read`, which reads the settings of a part, with a section that has `items`: "key=value",
/// as in Recipe::settings. `part`: its name, for errors. Errors: kInvalidArgument for a key that
/// `read` leaves; those of `read`.
void with_settings(const std::string& part, const std::vector<std::string>& items,
                   const std::function<void(Section& settings)>& read);

/// A part by its name, built in or registered. A program without a file gets a recipe's loss so, or
/// a schedule for a loop of its own.
///
///   const auto lamb = lockstep::make_part(lockstep::optimizers(), "lamb", {"beta2=0.98"});
///   const auto net = lockstep::make_part(lockstep::networks(), "vit_b_16")(/*num_classes=*/10);
///
/// settings: "key=value", as in Recipe::settings, with the part's own keys. `lockstep train --list`
/// shows them beside those of the section, such as weight_decay, which a part alone has not. Call
/// it in main(), while one thread runs. Errors: those of Registry::read(); kInvalidArgument for a
/// key that the part has not.
template <typename Made>
Made make_part(const Registry<Made>& registry, const std::string& name,
               const std::vector<std::string>& settings = {}) {
  std::optional<Made> made;
  with_settings(name, settings, [&](Section& section) { made = registry.read(name, section); });
  return *std::move(made);
}

}  // namespace lockstep
