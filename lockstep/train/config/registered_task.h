#pragma once
// A task of one's own as `model.type`: its recipe in the places of what a file would name.

#include <string>

#include "lockstep/recipe.h"
#include "lockstep/train/config/config.h"
#include "lockstep/train/config/task_settings.h"

namespace lockstep::inline internal {

/// What is wrong with the parts of a recipe; empty: nothing.
std::string fault_of(const Recipe& recipe);

/// Before a tree is read: what Recipe::settings and the recipe's name say by default, if model.type
/// is a registered task. Errors: of its settings; a key that one of the recipe's parts replaces.
void complete_by_recipe(Node& tree);

/// `model.type`, and the settings of the task if it is a registered one: sets config.type or
/// config.task, and of the latter the network.
void read_type(ConfigSection& model, ModelConfig& config);

/// Those of a classifier, but for the parts that the recipe has.
TaskSettings registered_task(const Recipe& recipe);

}  // namespace lockstep::inline internal
