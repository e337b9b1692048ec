#include "lockstep/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lockstep/error.h"
#include "lockstep/models/zoo/zoo.h"
#include "lockstep/train/callbacks/recipe_events.h"
#include "lockstep/train/config/overrides.h"
#include "lockstep/train/config/registered_task.h"
#include "lockstep/train/config/yaml_reader.h"
#include "lockstep/train/config/yaml_writer.h"
#include "lockstep/train/run/run.h"
#include "lockstep/train/trainer.h"

namespace lockstep {
namespace {

/// The reader of a part without settings.
template <typename Made>
std::function<Made(Section&)> reader_of(const Made& make) {
  return [make](Section&) { return make; };
}

/// The recipe's parts become those of its name, in the place of an earlier recipe's.
void register_parts(const Recipe& recipe) {
  const std::string about = "of the recipe";
  networks().put({recipe.name, about, reader_of(recipe.network)});
  datasets().put({recipe.name, about, reader_of(recipe.data)});
  if (recipe.loss) losses().put({recipe.name, about, reader_of(LoggedLoss(recipe.loss))});
  if (recipe.metric) metrics().put({recipe.name, about, reader_of(recipe.metric)});
}

/// The file that would say the same.
std::string file_of(const Recipe& recipe) {
  std::string text = fmt::format(
      "model: {{type: cls, network: {{name: {0}}}, head: {{num_classes: {1}}}}}\n"
      "train: {{ckpt_save_dir: out/{0}, dataset: {{type: {0}}}, loader: {{batch_size: 32}}}}\n"
      "eval: {{dataset: {{type: {0}}}, loader: {{batch_size: 32}}}}\n",
      recipe.name, recipe.num_classes);
  if (recipe.loss) text += fmt::format("loss: {{name: {}}}\n", recipe.name);
  text += fmt::format("metric: {{{}main_indicator: {}}}\n",
                      recipe.metric ? fmt::format("name: {}, ", recipe.name) : "",
                      recipe.main_indicator);
  return text;
}

/// Registering the recipe's network would replace that of the zoo.
bool is_of_zoo(const std::string& name) {
  const auto& all = zoo();
  return std::any_of(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
}

void check(const Recipe& recipe) {
  std::string fault = fault_of(recipe);
  if (fault.empty() && !recipe.data) fault = "the recipe has no data";
  if (fault.empty() && is_of_zoo(recipe.name)) {
    fault = fmt::format(
        "the name '{0}' is that of a network of the zoo: give the recipe another; the "
        "settings model.name={0} and train.ckpt_save_dir=out/{0} keep checkpoints",
        recipe.name);
  }
  if (!fault.empty()) throw Error(ErrorCode::kInvalidArgument, "train(recipe): " + fault);
}

/// Trains by the recipe, whose events learn of any failure, too.
int run_recipe(const Config& config, const Recipe& recipe, World world, bool by_command) {
  const auto events = std::make_shared<EventCallback>(recipe.events);
  RunExtras extras = extras_of(recipe);
  extras.callbacks = {events};
  extras.by_command = by_command;
  try {
    return run_training(config, std::move(world), extras);
  } catch (const std::exception& error) {
    events->failed(error.what());
    throw;
  }
}

}  // namespace

int train(const Recipe& recipe, World world) {
  check(recipe);
  register_parts(recipe);
  Node tree = parse_yaml(file_of(recipe), "the recipe");
  apply_overrides(tree, recipe.settings);
  expand_variables(tree);
  Config config = read_config(std::move(tree));
  config.source = write_yaml(config.effective);
  return run_recipe(config, recipe, std::move(world), /*by_command=*/false);
}

}  // namespace lockstep

namespace lockstep::inline internal {

RunExtras extras_of(const Recipe& recipe) {
  return {.optimizer = recipe.optimizer,
          .optimizers = recipe.optimizers,
          .training_step = recipe.training_step,
          .log_names = recipe.log_names};
}

RunExtras extras_of(const Config& config) {
  return config.model.task ? extras_of(*config.model.task) : RunExtras();
}

int train_as_configured(const Config& config, World world) {
  if (!config.model.task) return run_training(config, std::move(world));
  return run_recipe(config, *config.model.task, std::move(world), /*by_command=*/true);
}

}  // namespace lockstep::inline internal
