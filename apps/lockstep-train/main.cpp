// lockstep train: trains, evaluates or checks a model described by a YAML file. One process of a
// run, alone or under any launcher that World::join() knows.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/base/quick_end.h"
#include "lockstep/launch/warm/warm_start.h"
#include "lockstep/train/config/dictionaries.h"
#include "lockstep/train/config/weights.h"
#include "lockstep/train/run.h"
#include "lockstep/train/warm_up.h"

namespace {

struct Options {
  std::string config;
  std::vector<std::string> overrides;
  bool check = false;
  bool eval = false;
};

void declare(CLI::App& app, Options& options) {
  app.add_option("-c,--config", options.config, "YAML file, e.g. configs/cls/resnet/...yaml")
      ->required()
      ->type_name("FILE");
  app.add_option("-o,--opt", options.overrides, "Values that replace those of the file")
      ->type_name("key.sub=value ...");
  auto* check = app.add_flag("--check", options.check,
                             "Only check the file; print configuration and plan of the run");
  app.add_flag("--eval", options.eval, "Only evaluate the best checkpoint (or eval.ckpt_load_path)")
      ->excludes(check);
}

/// MindOCR's users write -c=FILE, which other parsers take for the file "=FILE".
std::vector<std::string> split_short_options(int argc, char** argv) {
  std::vector<std::string> words;
  for (int i = argc - 1; i > 0; --i) {  // CLI11 wants them in reverse
    const std::string word = argv[i];
    if (word.starts_with("-c=") || word.starts_with("-o=")) {
      words.push_back(word.substr(3));
      words.push_back(word.substr(0, 2));
    } else {
      words.push_back(word);
    }
  }
  return words;
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Train a model described by a YAML file.", "lockstep train");
  declare(app, options);
  try {
    app.parse(split_short_options(argc, argv));
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    throw lockstep::Error(lockstep::ErrorCode::kInvalidArgument,
                          std::string(error.what()) + " (see lockstep train --help)");
  }
  const auto config = lockstep::load_config(options.config, options.overrides);
  lockstep::check_dictionaries(config);
  if (!options.check && !options.eval) lockstep::require_pretrained(config.model);
  const auto world = lockstep::World::join();
  if (world.size > 1) lockstep::set_log_name("rank " + std::to_string(world.rank));
  if (options.check) return lockstep::run_check(config, world);
  if (options.eval) return lockstep::run_evaluation(config, world);
  return lockstep::run_training(config, world);
}

}  // namespace

int main(int argc, char** argv) {
  lockstep::warm_start(lockstep::warm_up);
  lockstep::end_without_teardown();
  return lockstep::run_main("lockstep train", run, argc, argv);
}
