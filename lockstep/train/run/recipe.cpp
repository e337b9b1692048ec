#include "lockstep/train.h"

#include <fmt/format.h>

#include <utility>

#include "lockstep/error.h"
#include "lockstep/train/callbacks/recipe_events.h"
#include "lockstep/train/config/registered_task.h"
#include "lockstep/train/config/yaml_reader.h"
#include "lockstep/train/config/yaml_writer.h"
#include "lockstep/train/part_makers.h"
#include "lockstep/train/run/run.h"

namespace lockstep {
namespace {

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

/// The recipe becomes the task of its name, in the place of an earlier one of that name.
int train(const Recipe& recipe, World world) {
  const std::string fault = fault_of(recipe);
  if (!fault.empty()) throw Error(ErrorCode::kInvalidArgument, "train(recipe): " + fault);
  register_built_in_parts();
  tasks().put({recipe.name, "of the program", [recipe](Section&) { return recipe; }});
  const auto file = fmt::format("model: {{type: {}}}\n", recipe.name);
  Config config = read_config(parse_yaml(file, "the recipe"));
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
