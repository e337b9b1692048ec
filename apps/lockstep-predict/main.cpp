// lockstep predict: finds and reads text in pictures. One process of a run, alone or under any
// launcher that World::join() knows.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "lockstep/base/arguments.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/base/quick_end.h"
#include "lockstep/launch/warm/warm_start.h"
#include "lockstep/predict/run_prediction.h"
#include "lockstep/train/warm_up.h"

namespace {

void declare(CLI::App& app, lockstep::PredictOptions& options) {
  app.add_option("-c,--config", options.config, "YAML file of a detector or a recogniser")
      ->type_name("FILE");
  app.add_option(
         "-i,--input", options.input,
         "A picture, or a folder of .jpg, .jpeg and .png; default: predict.dataset.data_dir")
      ->type_name("PATH");
  app.add_option("--det", options.det,
                 "The detector's YAML file, weights (.ckpt, .pth, .safetensors), or both")
      ->expected(1, 2)
      ->type_name("FILE");
  app.add_option("--rec", options.rec, "The same for the recogniser, which reads what was found")
      ->expected(1, 2)
      ->type_name("FILE");
  app.add_option("--output", options.output,
                 "Folder for results and pictures; default: predict.output_save_dir, else output")
      ->type_name("DIR");
  app.add_option("--drop_score", options.drop_score,
                 "Least confidence of a text, with both networks")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("-o,--opt", options.overrides, "Values that replace those of the YAML files")
      ->type_name("key.sub=value ...");
}

int run(int argc, char** argv) {
  lockstep::PredictOptions options;
  CLI::App app("Find and read text in pictures.", "lockstep predict");
  declare(app, options);
  try {
    app.parse(lockstep::reversed_arguments(argc, argv));
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    throw lockstep::Error(lockstep::ErrorCode::kInvalidArgument,
                          std::string(error.what()) + " (see lockstep predict --help)");
  }
  const auto plan = lockstep::plan_prediction(options);
  const auto world = lockstep::World::join();
  if (world.size > 1) lockstep::set_log_name("rank " + std::to_string(world.rank));
  return lockstep::run_prediction(plan, world);
}

}  // namespace

int main(int argc, char** argv) {
  lockstep::warm_start(lockstep::warm_up);
  lockstep::end_without_teardown();
  return lockstep::run_main("lockstep predict", run, argc, argv);
}
