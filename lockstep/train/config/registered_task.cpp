#include "lockstep/train/config/registered_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/train/config/node.h"
#include "lockstep/train/config/overrides.h"
#include "lockstep/train/config/own_parts.h"
#include "lockstep/train/config/sections.h"

namespace lockstep::inline internal {
namespace {

/// A recipe out of the section `model`, whose `type` is its name.
std::shared_ptr<const Recipe> checked_recipe(const ConfigSection& model, OwnPart<Recipe> part) {
  auto recipe = std::make_shared<Recipe>(std::move(part.make));
  recipe->name = std::move(part.name);
  const auto fault = fault_of(*recipe);
  if (!fault.empty()) model.fail("type", fmt::format("{}: {}", recipe->name, fault));
  return recipe;
}

/// The registered task that the tree names, with its settings; null: none.
std::shared_ptr<const Recipe> recipe_in(Node& tree) {
  Node* const model = tree.find("model");
  const Node* const type = model != nullptr ? model->find("type") : nullptr;
  if (type == nullptr) return nullptr;
  ConfigSection section(*model, "model");
  auto part = read_own_part(section, "type", type->text, tasks());
  return part ? checked_recipe(section, std::move(*part)) : nullptr;
}

bool names_metric(const Node& tree) {
  const Node* const metric = tree.find("metric");
  return metric != nullptr && metric->find("name") != nullptr;
}

/// The defaults of any recipe, as items of -o. `own`: those of its settings.
std::vector<std::string> common_defaults(const Recipe& recipe, const Node& own, const Node& tree) {
  std::vector<std::string> items = {fmt::format("train.ckpt_save_dir=out/{}", recipe.name),
                                    "train.loader.batch_size=32"};
  const Node* const eval = own.find("eval");
  const bool own_eval =
      eval == nullptr ? static_cast<bool>(recipe.data) : eval->kind != Node::Kind::kNull;
  if (own_eval || tree.find("eval") != nullptr) items.emplace_back("eval.loader.batch_size=32");
  // A metric that is named with its whole section has a figure of its own.
  const bool whole = std::any_of(recipe.settings.begin(), recipe.settings.end(),
                                 [](const auto& item) { return item.starts_with("metric="); });
  if (!names_metric(tree) && !(whole && names_metric(own))) {
    items.push_back("metric.main_indicator=" + recipe.main_indicator);
  }
  return items;
}

/// Adds what `node` lacks. New sections have the place of the one that they are in.
void fill_in(Node& node, const Node& defaults) {
  for (const auto& [key, place, value] : defaults.entries) {
    const bool is_section = value.kind == Node::Kind::kMap;
    if (node.find(key) == nullptr) {
      node.entries.push_back({key, place, is_section ? Node() : value});
      if (is_section) node.entries.back().value.location = node.location;
    }
    Node& own = *node.find(key);
    if (!is_section) continue;
    if (own.kind == Node::Kind::kNull) own.kind = Node::Kind::kMap;
    if (own.kind == Node::Kind::kMap) fill_in(own, value);
  }
}

/// A section whose part a recipe has.
struct ReplacedSection {
  std::string name;
  bool replaced;
  std::string has;                  ///< What the recipe has.
  std::vector<std::string> keys{};  ///< They still count.
};

/// Errors: the first key in it that does not count.
void refuse_replaced(const Node& tree, const std::string& task, const ReplacedSection& section) {
  const Node* node = &tree;
  for (const auto& key : split(section.name, '.')) {
    node = node != nullptr ? node->find(key) : nullptr;
  }
  if (node == nullptr) return;
  for (const auto& [key, place, value] : node->entries) {
    if (contains(section.keys, key)) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: {}.{} would have no effect: model.type {} has {}",
                            to_string(place), section.name, key, task, section.has));
  }
}

void refuse_replaced_sections(const Node& tree, const Recipe& recipe) {
  const bool data = static_cast<bool>(recipe.data), steps = static_cast<bool>(recipe.training_step);
  const bool optimizer = static_cast<bool>(recipe.optimizer), classes = recipe.num_classes > 0;
  const std::array<ReplacedSection, 7> sections = {
      {{"train.dataset", data, "data of its own"},
       {"eval.dataset", data, "data of its own"},
       {"loss", recipe.loss || steps, "a loss of its own"},
       {"metric", static_cast<bool>(recipe.metric), "a metric of its own", {"main_indicator"}},
       {"optimizer", optimizer || steps, "an optimizer of its own", {"groups", "layer_decay"}},
       {"postprocess", !classes, "no classes (Recipe::num_classes)"},
       {"predict", !classes, "no classes (Recipe::num_classes)"}}};
  for (const auto& section : sections) {
    if (section.replaced) refuse_replaced(tree, recipe.name, section);
  }
}

LossConfig read_recipe_loss(ConfigSection&, const TaskSettings& task) {
  const Recipe& recipe = *task.recipe;
  if (!recipe.loss) return CrossEntropyConfig();  // its training_step asks for none
  return OwnLoss{recipe.name, LoggedLoss(recipe.loss, {}, recipe.num_items)};
}

MetricConfig read_recipe_metric(ConfigSection& section, const TaskSettings& task) {
  const Recipe& recipe = *task.recipe;
  MetricConfig config;
  config.names = {recipe.name};
  config.own = {{recipe.name, recipe.metric}};
  section.read("main_indicator", config.main_indicator, "");
  return config;
}

PostprocessConfig read_no_postprocess(ConfigSection&) {
  return ClassNames();
}

}  // namespace

std::string fault_of(const Recipe& recipe) {
  if (!is_plain_name(recipe.name)) {
    return fmt::format("the name '{}' must be of letters, digits, '_', '-' and '.'", recipe.name);
  }
  if (!recipe.network) return "the recipe has no network";
  if (static_cast<bool>(recipe.training_step) == recipe.optimizers.empty()) {
    return "training_step and optimizers belong together";
  }
  if (recipe.training_step && (recipe.loss || recipe.optimizer)) {
    return "training_step takes the place of loss and optimizer";
  }
  if (recipe.num_items && !recipe.loss) return "num_items belongs to a loss of the recipe";
  return "";
}

void complete_by_recipe(Node& tree) {
  const auto recipe = recipe_in(tree);
  if (!recipe) return;
  const auto from = fmt::format("Recipe::settings of {}: ", recipe->name);
  Node own;
  apply_overrides(own, recipe->settings, from);
  Node common;
  apply_overrides(common, common_defaults(*recipe, own, tree), from);
  Node defaults = common;
  apply_overrides(defaults, recipe->settings, from);
  fill_in(defaults, common);  // what a setting of a whole section replaced
  expand_variables(defaults);
  fill_in(tree, defaults);
  refuse_replaced_sections(tree, *recipe);
}

void read_type(ConfigSection& model, ModelConfig& config) {
  const auto built_in = names_of(all_tasks());
  const std::vector<std::string> mindocrs = {"kie", "layout", "table"};
  std::string given, type = built_in.front();
  model.read("type", given, "");
  if (!contains(mindocrs, given)) {
    refuse_unknown(model, "type", joined_names(built_in, tasks()), "tasks");
  }
  auto own = read_part(model, "type", type, built_in, tasks(),
                       "classification; detection, or recognition, of text", mindocrs);
  if (!own) {
    config.type = static_cast<ModelType>(std::find(built_in.begin(), built_in.end(), type) -
                                         built_in.begin());
    return;
  }
  config.task = checked_recipe(model, std::move(*own));
  config.network = OwnPart<NetworkMaker>{config.task->name, config.task->network};
  config.head.num_classes = config.task->num_classes;
}

TaskSettings registered_task(const Recipe& recipe) {
  TaskSettings task = class_task();
  task.name = recipe.name.c_str();
  task.recipe = &recipe;
  task.default_dataset = "";
  if (recipe.loss || recipe.training_step) task.read_loss = read_recipe_loss;
  if (recipe.metric) task.read_metric = read_recipe_metric;
  if (recipe.num_classes == 0) task.read_postprocess = read_no_postprocess;
  return task;
}

}  // namespace lockstep::inline internal
