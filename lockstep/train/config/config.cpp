#include "lockstep/train/config/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "lockstep/error.h"
#include "lockstep/train/config/overrides.h"
#include "lockstep/train/config/recipe_file.h"
#include "lockstep/train/config/registered_task.h"
#include "lockstep/train/config/sections.h"
#include "lockstep/train/config/task_settings.h"
#include "lockstep/train/config/yaml_reader.h"

namespace lockstep::inline internal {
namespace {

/// What follows evaluations needs some.
void check_evaluates(const Config& config, ConfigSection& root) {
  if (config.system.val_while_train) return;
  const std::string why = "follows evaluations, so it needs system.val_while_train: True";
  if (config.scheduler.scheduler == "reduce_on_plateau") {
    root.section("scheduler").fail("scheduler", "reduce_on_plateau " + why);
  }
  if (config.train.early_stopping) root.section("train").fail("early_stopping", why);
}

/// A list of {name: NAME, ...}.
std::vector<OwnPart<CallbackMaker>> read_callbacks(ConfigSection& root) {
  root.any("callbacks");
  if (!root.has("callbacks")) return {};
  Node* const list = root.any("callbacks");
  if (list->kind != Node::Kind::kList) {
    root.fail("callbacks", "must be a list of mappings such as {name: NAME}");
  }
  if (callbacks().parts().empty()) {
    root.fail("callbacks", "must be empty: this program has registered none");
  }
  std::vector<OwnPart<CallbackMaker>> parts;
  for (size_t i = 0; i < list->items.size(); ++i) {
    ConfigSection item(list->items[i], fmt::format("callbacks[{}]", i));
    std::string name;
    parts.push_back(*read_part(item, "name", name, {}, callbacks(), ""));
    item.finish();
  }
  return parts;
}

/// Checks across sections.
void check_together(Config& config, ConfigSection& root) {
  if (config.system.val_while_train && !config.eval) {
    root.fail("system", "has val_while_train: True, but there is no section 'eval'");
  }
  task_settings(config.model).complete(config, root);
  check_evaluates(config, root);
  if (config.parallel.global_batch > 0 && config.train.gradient_accumulation_steps > 1) {
    root.section("train").fail("gradient_accumulation_steps",
                               "must be 1 with parallel.global_batch, from which it follows");
  }
  const auto& hook = config.parallel.comm_hook;
  if (drops_overflows(config) && (hook == "int8" || hook == "powersgd")) {
    root.section("parallel")
        .fail("comm_hook",
              fmt::format("must be none, auto, fp16 or bf16 with a dynamic loss_scaler or "
                          "system.drop_overflow_update, not '{}': it carries rounding "
                          "errors from one step to the next, and an overflow with them",
                          hook));
  }
}

/// One network takes both, so eval.dataset has train's channels unless it gives its own.
void take_over_channels(Node& tree, const DatasetConfig& train) {
  Node* const eval = tree.find("eval");
  Node* const dataset = eval != nullptr ? eval->find("dataset") : nullptr;
  const Node* const type = dataset != nullptr ? dataset->find("type") : nullptr;
  if (train.channels == 0 || type == nullptr) return;
  if (type->text != "MnistDataset" && type->text != "FashionMnistDataset") return;
  Node channels = Node::scalar(std::to_string(train.channels));
  Node* const own = dataset->find("channels");
  if (own == nullptr) {
    dataset->entries.push_back({"channels", {}, std::move(channels)});
  } else if (own->kind == Node::Kind::kNull) {
    *own = std::move(channels);
  }
}

OptimizerConfig read_optimizer_of(const TaskSettings& task, const ConfigSection& section,
                                  double peak) {
  const Recipe* recipe = task.recipe;
  const bool own = recipe != nullptr && (recipe->optimizer || recipe->training_step);
  return own ? read_groups_alone(section, peak) : read_optimizer(section, task.exact_decay, peak);
}

/// The metric of those that name none.
void watch_main_indicator(Config& config) {
  const std::string& main = config.metric.main_indicator;
  if (config.scheduler.plateau.metric.empty()) config.scheduler.plateau.metric = main;
  auto& early = config.train.early_stopping;
  if (early && early->metric.empty()) early->metric = main;
}

const std::vector<std::string>& section_names() {
  static const std::vector<std::string> names = {
      "system",    "common",      "model", "postprocess", "metric",  "loss",     "scheduler",
      "optimizer", "loss_scaler", "train", "eval",        "predict", "parallel", "callbacks"};
  return names;
}

/// ", did you mean 'train.max_steps'?" for a key that was written without its section, or "".
std::string with_its_section(Node tree, const std::string& key) {
  const auto& names = section_names();
  std::erase_if(tree.entries, [&](const Node::Entry& entry) {
    return std::find(names.begin(), names.end(), entry.key) == names.end();
  });
  Settings settings;
  try {
    read_config(std::move(tree), &settings);
  } catch (const Error&) {  // what was read before it is enough here
  }
  constexpr size_t kMost = 3;
  std::vector<std::string> meant;
  for (const Setting& setting : settings) {
    if (setting.key == key && meant.size() < kMost)
      meant.push_back(fmt::format("'{}.{}'", setting.section, key));
  }
  return meant.empty() ? "" : fmt::format(", did you mean {}?", fmt::join(meant, " or "));
}

}  // namespace

std::span<const TaskSettings> all_tasks() {
  static const std::array tasks = {class_task(), detection_task(), recognition_task()};
  return tasks;
}

const TaskSettings& task_settings(ModelType type) {
  return all_tasks()[static_cast<size_t>(type)];
}

TaskSettings task_settings(const ModelConfig& config) {
  return config.task ? registered_task(*config.task) : task_settings(config.type);
}

bool drops_overflows(const Config& config) {
  return config.system.drop_overflow_update || (config.loss_scaler && config.loss_scaler->dynamic);
}

Config read_config(Node tree, Settings* settings) {
  Config config;
  config.effective = std::move(tree);
  complete_by_recipe(config.effective);
  ConfigSection root(config.effective, "", settings);
  root.expect(section_names(),
              [&](const std::string& key) { return with_its_section(config.effective, key); });
  config.system = read_system(root.section("system"));
  root.any("common");
  config.model = read_model(root.section("model"));
  TaskSettings task = task_settings(config.model);
  config.postprocess = read_all_of(root.section("postprocess"), task.read_postprocess);
  config.metric = read_all_of(root.section("metric"), task.read_metric, task);
  config.loss = read_all_of(root.section("loss"), task.read_loss, task);
  config.scheduler = read_scheduler(root.section("scheduler"));
  config.optimizer = read_optimizer_of(task, root.section("optimizer"), config.scheduler.lr);
  if (root.has("loss_scaler")) config.loss_scaler = read_loss_scaler(root.section("loss_scaler"));
  root.any("loss_scaler");
  config.train = read_train(root.section("train"), task);
  take_over_channels(config.effective, config.train.dataset);
  task.small_images = config.train.dataset.has_small_images();
  if (root.has("eval")) config.eval = read_eval(root.section("eval"), task);
  root.any("eval");
  if (root.has("predict")) config.predict = read_predict(root.section("predict"), task);
  root.any("predict");
  config.parallel = read_parallel(root.section("parallel"));
  config.callbacks = read_callbacks(root);
  watch_main_indicator(config);
  root.finish();
  check_together(config, root);
  return config;
}

Config load_config(const std::filesystem::path& named, std::span<const std::string> overrides) {
  const auto [path, text] = read_recipe(named);
  Node tree = parse_yaml(text, path.string());
  if (tree.kind == Node::Kind::kNull) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{} is empty", path.string()));
  }
  apply_overrides(tree, overrides);
  expand_variables(tree);
  Config config = read_config(std::move(tree));
  config.source = text;
  if (path != named) config.recipe = path.string();
  return config;
}

}  // namespace lockstep::inline internal
