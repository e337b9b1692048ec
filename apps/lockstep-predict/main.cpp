// lockstep predict: classifies pictures, or finds and reads text in them. One process of a run,
// alone or under any launcher that World::join() detects.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "apps/command_line.h"
#include "lockstep/base/arguments.h"
#include "lockstep/base/log.h"
#include "lockstep/base/quick_end.h"
#include "lockstep/error.h"
#include "lockstep/predict/run_prediction.h"
#include "lockstep/spawn.h"
#include "lockstep/train/warm_up.h"

namespace {

void declare(CLI::App& app, lockstep::PredictOptions& options) {
  app.add_option("-c,--config", options.config,
                 "YAML file of a classifier, a detector or a recogniser")
      ->type_name("FILE");
  app.add_option(
         "-i,--input", options.input,
         "a picture, or a folder of .jpg, .jpeg and .png; default: predict.dataset.data_dir")
      ->type_name("PATH");
  app.add_option("--det", options.det,
                 "the detector's YAML file, weights (.ckpt, .pth, .safetensors), or both")
      ->expected(1, 2)
      ->type_name("FILE");
  app.add_option("--rec", options.rec, "the same for the recogniser, which reads the regions found")
      ->expected(1, 2)
      ->type_name("FILE");
  app.add_option("--cls", options.cls, "the same for a classifier, which works alone")
      ->expected(1, 2)
      ->type_name("FILE");
  app.add_option("--output", options.output,
                 "folder for results and pictures; default: predict.output_save_dir, else output")
      ->type_name("DIR");
  app.add_option("--drop_score", options.drop_score,
                 "least confidence of a text, with both networks")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_flag_callback(
      "--no-draw", [&options] { options.draw = false; }, "write no pictures, the lines alone");
  app.add_option("-o,--opt", options.overrides, "values that replace those of the YAML files")
      ->type_name("key.sub=value ...");
}

int run(int argc, char** argv) {
  lockstep::PredictOptions options;
  CLI::App app("Classify pictures, or find and read text in them.", "lockstep predict");
  declare(app, options);
  if (const auto status =
          lockstep::app::parse_command_line(app, lockstep::reversed_arguments(argc, argv)))
    return *status;
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
