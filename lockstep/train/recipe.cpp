#include "lockstep/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "lockstep/error.h"
#include "lockstep/train/callbacks/recipe_events.h"
#include "lockstep/train/config/overrides.h"
#include "lockstep/train/config/yaml_reader.h"
#include "lockstep/train/config/yaml_writer.h"
#include "lockstep/train/run.h"
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
  if (recipe.loss) losses().put({recipe.name, about, reader_of(recipe.loss)});
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

bool is_name(const std::string& text) {
  const auto may_be = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), may_be);
}

void check(const Recipe& recipe) {
  const auto refuse = [](const std::string& why) {
    throw Error(ErrorCode::kInvalidArgument, "train(recipe): " + why);
  };
  if (!is_name(recipe.name)) {
    refuse(fmt::format("the name '{}' must be of letters, digits, '_', '-' and '.'", recipe.name));
  }
  if (!recipe.network) refuse("the recipe has no network");
  if (!recipe.data) refuse("the recipe has no data");
  if (static_cast<bool>(recipe.training_step) == recipe.optimizers.empty()) {
    refuse("training_step and optimizers belong together");
  }
  if (recipe.training_step && (recipe.loss || recipe.optimizer)) {
    refuse("training_step takes the place of loss and optimizer");
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
  const auto events = std::make_shared<EventCallback>(recipe.events);
  const RunExtras extras{
      recipe.optimizer, recipe.optimizers, recipe.training_step, {events}, false};
  try {
    return run_training(config, std::move(world), extras);
  } catch (const std::exception& error) {
    events->failed(error.what());
    throw;
  }
}

}  // namespace lockstep
