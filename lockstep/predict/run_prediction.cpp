#include "lockstep/predict/run_prediction.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/folder.h"
#include "lockstep/base/log.h"
#include "lockstep/observe/progress.h"
#include "lockstep/ocr/predict/pictures.h"
#include "lockstep/predict/outcomes.h"
#include "lockstep/predict/predictor.h"
#include "lockstep/train/compute_device.h"
#include "lockstep/train/setup.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// Only what is wrong with the picture; a full disk or a defect ends the run.
Outcome try_picture(Predictor& predictor, const fs::path& picture, const std::string& name) {
  try {
    return {true, predictor(picture, name)};
  } catch (const Error& error) {
    const bool of_picture = error.code() == ErrorCode::kCorrupt ||
                            error.code() == ErrorCode::kNotFound ||
                            error.code() == ErrorCode::kInvalidArgument;
    if (!of_picture) throw;
    return {false, error.what()};
  }
}

/// The line at the foot of the terminal.
class Meter {
 public:
  Meter(size_t pictures, bool wanted) : line_(2, wanted) {
    state_.title = "predict";
    state_.num_steps = static_cast<int64_t>(pictures);
  }
  void count(const Outcome& outcome) {
    if (!outcome.good) {
      line_.clear();
      log_warn(outcome.text);
    }
    ++state_.step;
    const auto elapsed = Clock::now() - begun_;
    state_.images_per_s =
        static_cast<double>(state_.step) / std::chrono::duration<double>(elapsed).count();
    state_.left = estimate_left(state_.step, state_.num_steps - state_.step, elapsed);
    line_.update(state_);
  }
  void finish() { line_.finish(); }

 private:
  ProgressLine line_;
  Progress state_;
  Clock::time_point begun_ = Clock::now();
};

void report(const PredictPlan& plan, const std::vector<Outcome>& outcomes) {
  std::string lines;
  size_t good = 0;
  for (const Outcome& one : outcomes) {
    if (!one.good) continue;
    lines += one.text + "\n";
    ++good;
  }
  if (good == 0) {
    throw Error(ErrorCode::kCorrupt, fmt::format("none of the {} pictures of {} could be used",
                                                 outcomes.size(), plan.input.string()));
  }
  const fs::path file = plan.output / plan.result_file();
  write_file_atomically(file, lines);
  const size_t bad = outcomes.size() - good;
  log_info(fmt::format("{} picture{} in {}{}", good, good == 1 ? "" : "s", file.string(),
                       bad == 0 ? "" : fmt::format("; {} could not be used", bad)));
}

}  // namespace

int run_prediction(const PredictPlan& plan, World world) {
  const auto pictures = ocr::find_pictures(plan.input, plan.output);
  const auto names = ocr::result_names(pictures, plan.input);
  const Config& config = (plan.det ? plan.det : plan.rec)->config;
  const auto device = take_compute_device(config, world);
  set_threads(threads_of(config.parallel, world));
  Predictor predictor(plan, device);
  make_folder(plan.output);

  Meter meter(pictures.size(), world.rank == 0);
  Outcomes outcomes(world, pictures.size(), [&](const Outcome& one) { meter.count(one); });
  const auto size = static_cast<size_t>(world.size);
  for (auto i = static_cast<size_t>(world.rank); i < pictures.size(); i += size) {
    outcomes.add(i, try_picture(predictor, pictures[i], names[i]));
  }
  const auto all = outcomes.finish();
  meter.finish();
  if (world.rank == 0) report(plan, all);
  return 0;
}

}  // namespace lockstep
