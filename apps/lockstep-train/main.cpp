// lockstep train: trains, evaluates or checks a model described by a YAML file. One process of a
// run, alone or under any launcher that World::join() detects.

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "apps/command_line.h"
#include "lockstep/base/arguments.h"
#include "lockstep/base/log.h"
#include "lockstep/base/quick_end.h"
#include "lockstep/error.h"
#include "lockstep/train/config/dictionaries.h"
#include "lockstep/train/run.h"
#include "lockstep/train/warm_up.h"
#include "lockstep/warm_start.h"
#include "lockstep/world/environment.h"

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
  app.add_option("-o,--opt", options.overrides, "values that replace those of the file")
      ->type_name("key.sub=value ...");
  auto* check = app.add_flag("--check", options.check,
                             "only check the file; print configuration and plan of the run");
  app.add_flag("--eval", options.eval, "only evaluate the best checkpoint (or eval.ckpt_load_path)")
      ->excludes(check);
}

/// `lockstep eval` runs this program with --eval as its first word.
bool is_eval(int argc, char** argv) {
  return argc > 1 && std::string_view(argv[1]) == "--eval";
}

int run(int argc, char** argv) {
  Options options;
  const bool evaluates = is_eval(argc, argv);
  const std::string name = evaluates ? "lockstep eval" : "lockstep train";
  CLI::App app(evaluates ? "Evaluate the model that a YAML file describes."
                         : "Train a model described by a YAML file.",
               name);
  declare(app, options);
  if (const auto status =
          lockstep::app::parse_command_line(app, lockstep::reversed_arguments(argc, argv)))
    return *status;
  const auto config = lockstep::load_config(options.config, options.overrides);
  lockstep::check_dictionaries(config);
  const auto world = lockstep::World::join();
  if (world.size > 1) lockstep::set_log_name("rank " + std::to_string(world.rank));
  if (options.check) return lockstep::run_check(config, world);
  if (options.eval) return lockstep::run_evaluation(config, world);
  return lockstep::run_training(config, world);
}

/// In a later generation the arguments were valid once already, so exit code 2 would be wrong.
int run_in_any_generation(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const lockstep::Error& error) {
    if (lockstep::exit_status(error) != 2) throw;
    if (!lockstep::is_later_generation(lockstep::this_environment())) throw;
    throw lockstep::Error(lockstep::ErrorCode::kUnavailable, error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  lockstep::warm_start(lockstep::warm_up);
  lockstep::end_without_teardown();
  return lockstep::run_main(is_eval(argc, argv) ? "lockstep eval" : "lockstep train",
                            run_in_any_generation, argc, argv);
}
