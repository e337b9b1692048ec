#include "lockstep/train/optimized_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "lockstep/base/text.h"
#include "lockstep/checkpoint/optimizer_state.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

[[noreturn]] void refuse_recipe(const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, "train(recipe): " + why);
}

/// A training_step does what these settings change, so they would have no effect.
void check_settings(const Config& config) {
  const auto need = [](bool right, const std::string& what) {
    if (!right) refuse_recipe("a recipe with training_step needs " + what);
  };
  const auto& hook = config.parallel.comm_hook;
  need(config.system.amp_level == AmpLevel::kO0, "system.amp_level=O0");
  need(!config.loss_scaler && !config.system.drop_overflow_update,
       "no loss_scaler and system.drop_overflow_update=False");
  need(config.train.gradient_accumulation_steps == 1, "train.gradient_accumulation_steps=1");
  need(hook == "none" || hook == "fp16" || hook == "bf16", "parallel.comm_hook none, fp16 or bf16");
}

OptimizedPart make_part(const Model& model, const RecipeOptimizer& recipe) {
  const auto modules = model.named_modules("", /*include_self=*/false);
  const auto* module = modules.find(recipe.part);
  if (module == nullptr) {
    const auto names = modules.keys();
    refuse_recipe(fmt::format("the network has no module '{}' for an optimizer{}", recipe.part,
                              did_you_mean(recipe.part, names)));
  }
  std::shared_ptr<torch::optim::Optimizer> optimizer;
  if (recipe.make) optimizer = recipe.make(**module);
  if (!optimizer) refuse_recipe(fmt::format("no optimizer was made for '{}'", recipe.part));
  return {recipe.part, *module, std::move(optimizer)};
}

/// Every parameter to train has one optimizer.
void check_shares(const Model& model, const std::vector<OptimizedPart>& parts) {
  std::unordered_map<const c10::TensorImpl*, int> owners;
  for (const auto& part : parts) {
    for (const auto& parameter : part.module->parameters()) {
      ++owners[parameter.unsafeGetTensorImpl()];
    }
  }
  for (const auto& item : model.named_parameters()) {
    if (!item.value().requires_grad()) continue;
    const int count = owners[item.value().unsafeGetTensorImpl()];
    if (count == 1) continue;
    refuse_recipe(
        fmt::format("the parameter '{}' is in {} of the parts with an optimizer, and "
                    "must be in one",
                    item.key(), count));
  }
}

std::string file_of_part(const OptimizedPart& part) {
  return fmt::format("optimizer_{}.safetensors", part.name);
}

}  // namespace

std::vector<OptimizedPart> make_optimized(const Config& config, const Model& model,
                                          const std::vector<RecipeOptimizer>& recipes) {
  check_settings(config);
  std::vector<OptimizedPart> parts;
  for (const auto& recipe : recipes) parts.push_back(make_part(model, recipe));
  check_shares(model, parts);
  return parts;
}

ExtraFiles optimizer_files(const torch::nn::Module& model,
                           const std::vector<OptimizedPart>& parts) {
  ExtraFiles files;
  for (size_t i = 1; i < parts.size(); ++i) {
    const auto& optimizer = *parts[i].optimizer;
    files[file_of_part(parts[i])] = {optimizer_tensors(model, optimizer),
                                     {{"optimizer", optimizer_kind(optimizer)}}};
  }
  return files;
}

void load_optimizers(const std::filesystem::path& checkpoint, const torch::nn::Module& model,
                     const std::vector<OptimizedPart>& parts) {
  if (checkpoint.empty()) return;
  for (size_t i = 1; i < parts.size(); ++i) {
    const auto name = file_of_part(parts[i]);
    auto file = load_extra(checkpoint, name);
    const std::string kind = optimizer_kind(*parts[i].optimizer);
    const std::string saved = file ? file->metadata["optimizer"] : "none";
    if (saved != kind) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{}: the optimizer of '{}' was {}, now it is {}", checkpoint.string(),
                              parts[i].name, saved, kind));
    }
    load_optimizer(model, *parts[i].optimizer, std::move(file->tensors),
                   (checkpoint / name).string());
  }
}

}  // namespace lockstep
