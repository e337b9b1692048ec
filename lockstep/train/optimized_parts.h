#pragma once
// Parts of a network with optimizers of their own: Recipe::optimizers.

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/train.h"
#include "lockstep/train/config/config.h"
#include "lockstep/training_checkpoint.h"

namespace lockstep::inline internal {

/// A part of the model and its optimizer.
struct OptimizedPart {
  std::string name;  ///< Of the module, "generator"; empty: the whole model.
  std::shared_ptr<torch::nn::Module> module;
  std::shared_ptr<torch::optim::Optimizer> optimizer;
};

/// The field of metrics.jsonl with the loss of a part.
inline std::string loss_field(const std::string& part) {
  return "loss_" + part;
}

/// Errors: kInvalidArgument for settings that a training_step does not support; for a part that
/// `model` lacks, with the nearest name. The same for a parameter to train that is in no part or in
/// several.
std::vector<OptimizedPart> make_optimized(const Config& config, const Model& model,
                                          const std::vector<RecipeOptimizer>& recipes);

/// The state of all optimizers but the first as files of a checkpoint, which holds the first's
/// anyway: optimizer_PART.safetensors.
ExtraFiles optimizer_files(const torch::nn::Module& model, const std::vector<OptimizedPart>& parts);
/// Checks that the parts behind the first, whose state has no name in a checkpoint, are those that
/// it was saved with. `parts`: empty for one optimizer of the whole model. Errors:
/// kInvalidArgument, which names the parts that differ.
void check_saved_parts(const std::filesystem::path& checkpoint,
                       const std::vector<OptimizedPart>& parts);
/// The inverse of optimizer_files(), after that check. Errors: as load_extra(); kInvalidArgument
/// for an optimizer of another kind.
void load_optimizers(const std::filesystem::path& checkpoint, const torch::nn::Module& model,
                     const std::vector<OptimizedPart>& parts);

}  // namespace lockstep::inline internal
