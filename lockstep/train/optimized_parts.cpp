#include "lockstep/train/optimized_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <unordered_map>

#include "lockstep/base/folder.h"
#include "lockstep/base/text.h"
#include "lockstep/checkpoint/optimizer_state.h"
#include "lockstep/error.h"
#include "lockstep/parallel/module_state.h"
#include "lockstep/train/optim/parameter_groups.h"

namespace lockstep::inline internal {
namespace {

[[noreturn]] void refuse_recipe(const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, why);
}

/// A training_step does what these settings change, so they would have no effect. Levels above O1
/// cast the weights: a loss of the recipe, which gets float32, would not fit them.
void check_settings(const Config& config) {
  const auto need = [](bool right, const std::string& what) {
    if (!right) refuse_recipe("a recipe with training_step needs " + what);
  };
  const auto& hook = config.parallel.comm_hook;
  need(config.system.amp_level <= AmpLevel::kO1,
       "system.amp_level=O0 or O1: O2 and O3 cast the weights, and its losses get float32");
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
  drop_repeats(*optimizer);
  return {recipe.part, *module, std::move(optimizer)};
}

/// Every parameter to train has one optimizer.
void check_shares(const Model& model, const std::vector<OptimizedPart>& parts) {
  std::unordered_map<const c10::TensorImpl*, int> owners;
  for (const auto& part : parts) {
    for (const auto& parameter : parameters_of(*part.module)) {
      ++owners[parameter.tensor.unsafeGetTensorImpl()];
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

constexpr std::string_view kFileBegin = "optimizer_";
constexpr std::string_view kFileEnd = ".safetensors";

std::string file_of_part(const OptimizedPart& part) {
  return fmt::format("{}{}{}", kFileBegin, part.name, kFileEnd);
}

/// The parts with a file of their own in a checkpoint: all but the first. Sorted.
std::vector<std::string> parts_in(const std::filesystem::path& checkpoint) {
  std::vector<std::string> names;
  for (const std::string& file : list_folder(checkpoint)) {
    if (!file.starts_with(kFileBegin) || !file.ends_with(kFileEnd)) continue;
    names.push_back(
        file.substr(kFileBegin.size(), file.size() - kFileBegin.size() - kFileEnd.size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string listed(const std::vector<std::string>& names) {
  return names.empty() ? "none" : name_list(names);
}

}  // namespace

std::vector<OptimizedPart> make_optimized(const Config& config, const Model& model,
                                          const std::vector<RecipeOptimizer>& recipes) {
  try {
    check_settings(config);
    std::vector<OptimizedPart> parts;
    for (const auto& recipe : recipes) parts.push_back(make_part(model, recipe));
    check_shares(model, parts);
    return parts;
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("recipe {}: {}", config.model.task->name, error.what()));
  }
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

void check_saved_parts(const std::filesystem::path& checkpoint,
                       const std::vector<OptimizedPart>& parts) {
  const auto saved = parts_in(checkpoint);
  std::vector<std::string> now, lacking;
  for (size_t i = 1; i < parts.size(); ++i) now.push_back(parts[i].name);
  std::sort(now.begin(), now.end());
  if (saved == now) return;
  std::set_difference(now.begin(), now.end(), saved.begin(), saved.end(),
                      std::back_inserter(lacking));
  const std::string first = parts.empty() ? "" : parts.front().name;
  if (lacking.size() == 1 && std::binary_search(saved.begin(), saved.end(), first)) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: Recipe::optimizers began with '{}' when this was saved, and begins "
                    "with '{}' now: keep their order",
                    checkpoint.string(), lacking.front(), first));
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: behind the first, Recipe::optimizers were {} when this was saved, "
                          "and are {} now",
                          checkpoint.string(), listed(saved), listed(now)));
}

void load_optimizers(const std::filesystem::path& checkpoint, const torch::nn::Module& model,
                     const std::vector<OptimizedPart>& parts) {
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

}  // namespace lockstep::inline internal
