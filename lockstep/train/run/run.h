#pragma once
// The modes of `lockstep train`.

#include <memory>
#include <string>
#include <vector>

#include "lockstep/train.h"
#include "lockstep/train/config/config.h"
#include "lockstep/world.h"

namespace lockstep::inline internal {

class Callback;

/// Parts of a run that no configuration can name: a recipe has them.
struct RunExtras {
  OptimizerMaker optimizer{};  ///< Empty: that of the configuration.
  /// In its place; see Recipe. Both or none.
  std::vector<RecipeOptimizer> optimizers{};
  std::function<void(TrainingStep&)> training_step{};
  std::vector<std::string> log_names{};  ///< See Recipe.
  /// Called after the trainer's own, but before the one that evaluates.
  std::vector<std::shared_ptr<Callback>> callbacks{};
  bool by_command = true;  ///< A command started the run, so the log names the next one.
};

/// All but its events.
RunExtras extras_of(const Recipe& recipe);
/// Those of the registered task that model.type names; none of a built-in one.
RunExtras extras_of(const Config& config);

/// run_training() for a command: with all of the registered task, if model.type names one.
int train_as_configured(const Config& config, World world);

/// Collective. Trains as configured; writes results to train.ckpt_save_dir (see below). Returns the
/// process's exit status: 0, or 128 + the signal that ended the run early. Errors: those of its
/// parts; kMismatch if the final weights are not the same, bit by bit, on all ranks. The saved
/// files then stay.
///
/// Files: args.yaml (effective configuration), train_config.yaml (the file as given), classes.txt
/// (the names of a classifier's classes, if they have any), log_{rank}.txt, metrics.jsonl,
/// events.jsonl, result.log, result.svg, checkpoints (see training_checkpoint.h). Nothing is
/// written before model and data are checked. result.svg is drawn at every end, after a failure
/// too.
int run_training(const Config& config, World world, const RunExtras& extras = {});

/// Collective. Evaluates eval.ckpt_load_path, or the best checkpoint of train.ckpt_save_dir.
/// Errors: kInvalidArgument without a section `eval`, kNotFound.
int run_evaluation(const Config& config, World world);

/// Collective. Trains for at most `steps` optimizer steps from the run's first weights, with a rate
/// that rises exponentially. Rank 0 prints rates, losses and a suggestion. Ends early once the loss
/// has diverged. Writes one file: a picture beside train.ckpt_save_dir. If hosts join or leave an
/// elastic job, it prints no suggestion, and the next generation searches anew. Returns 0, or 128 +
/// the signal that ended it. Errors: as run_training().
int run_find_lr(const Config& config, World world, int64_t steps);

/// Collective. Builds the model, reads the checkpoint to resume from, and prints the effective
/// configuration and the summary of the run on rank 0. Of the data it checks only the files'
/// sizes; for missing files it assumes the official size. Errors: those of the start of
/// run_training(), as far as they show without the data.
int run_check(const Config& config, World world);

}  // namespace lockstep::inline internal
