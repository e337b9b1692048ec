#include "lockstep/predict/run_prediction.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <opencv2/core.hpp>
#include <optional>

#include "lockstep/base/clock.h"
#include "lockstep/base/file.h"
#include "lockstep/base/folder.h"
#include "lockstep/base/log.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/data/prefetcher.h"
#include "lockstep/error.h"
#include "lockstep/observe/progress.h"
#include "lockstep/ocr/predict/pictures.h"
#include "lockstep/predict/outcomes.h"
#include "lockstep/predict/predictor.h"
#include "lockstep/train/compute_device.h"
#include "lockstep/train/setup.h"

namespace lockstep::inline internal {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto kPicture = std::chrono::minutes(10);  // to read one, from any disk

/// A picture that a thread has read, or the reason why it is unusable.
struct Loaded {
  size_t picture = 0;
  ocr::Sample sample;
  std::string fault;
};

/// Catches only faults of the picture; a full disk or a defect ends the run.
Loaded load(const Predictor& predictor, size_t number, const fs::path& picture) {
  try {
    return {number, predictor.load(picture), ""};
  } catch (const Error& error) {
    if (!is_of_picture(error)) throw;
    return {number, {}, error.what()};
  }
}

/// The progress line at the foot of the terminal.
class Meter {
 public:
  Meter(size_t pictures, bool wanted) : line_(2, wanted) {
    state_.title = "predict";
    state_.num_steps = static_cast<int64_t>(pictures);
  }
  void count(const Outcome& outcome) {
    if (!outcome.good) warn(outcome.text);
    for (const auto& fault : outcome.faults) warn(fault);
    ++state_.step;
    const auto elapsed = Clock::now() - begun_;
    state_.images_per_s =
        static_cast<double>(state_.step) / std::chrono::duration<double>(elapsed).count();
    state_.left = estimate_left(state_.step, state_.num_steps - state_.step, elapsed);
    line_.update(state_);
  }
  void finish() { line_.finish(); }

 private:
  void warn(const std::string& fault) {
    line_.clear();
    log_warn(fault);
  }

  ProgressLine line_;
  Progress state_;
  Clock::time_point begun_ = Clock::now();
};

/// Lines are in FILE.partial until the end, when it becomes FILE: a killed run leaves its results
/// so far.
class LineFile {
 public:
  /// Writes nothing before the first line.
  explicit LineFile(fs::path path)
      : path_(std::move(path)), partial_(path_.string() + ".partial") {}

  bool is_open() const { return static_cast<bool>(fd_); }
  const fs::path& path() const { return path_; }

  void add(const std::string& text) {
    if (!fd_) open();
    const std::string line = text + "\n";
    write_all(fd_.get(), line.data(), line.size(), partial_.string());
  }

  void finish() {
    if (::fsync(fd_.get()) != 0 || ::rename(partial_.c_str(), path_.c_str()) != 0) {
      throw io_error("finish " + path_.string());
    }
    sync_folder(path_.parent_path());
  }

 private:
  void open() {
    fd_.reset(::open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!fd_) throw io_error("create " + partial_.string());
  }

  fs::path path_;
  fs::path partial_;
  UniqueFd fd_;
};

/// The result file, and of a classifier its table.
class ResultFiles {
 public:
  /// Both must outlive it. `pictures`: all of them, in their order.
  ResultFiles(const PredictPlan& plan, const std::vector<fs::path>& pictures)
      : input_(plan.input), pictures_(pictures), lines_(plan.output / plan.result_file()) {
    if (plan.table_file().empty()) return;
    table_.emplace(plan.output / plan.table_file());
    columns_ = shown_classes(plan.first().config);
  }

  /// Called for one outcome after the other, in the pictures' order.
  void add(const Outcome& outcome) {
    const fs::path& picture = pictures_[good_ + bad_];
    ++(outcome.good ? good_ : bad_);
    bad_regions_ += outcome.faults.size();
    good_regions_ += outcome.usable_regions;
    if (!outcome.good) return;
    lines_.add(outcome.text);
    if (!table_) return;
    if (has_no_number(outcome.text)) ++without_number_;
    if (!table_->is_open()) table_->add(class_table_head(columns_));
    table_->add(class_table_row(ocr::name_below(picture, input_), outcome.text));
  }

  void finish() {
    if (good_ == 0) {
      throw Error(ErrorCode::kCorrupt, fmt::format("none of the {} pictures of {} could be used",
                                                   bad_, input_.string()));
    }
    if (bad_regions_ > 0 && good_regions_ == 0) {
      throw Error(ErrorCode::kCorrupt,
                  fmt::format("no region of text in {} could be used, of {} that were found",
                              input_.string(), bad_regions_));
    }
    lines_.finish();
    if (table_) table_->finish();
    if (without_number_ > 0) {
      log_warn(fmt::format(
          "{} of {} pictures have probabilities that are not numbers (nan): the weights are "
          "damaged, or their training diverged",
          without_number_, good_));
    }
    log_info(summary());
  }

 private:
  std::string summary() const {
    auto text =
        fmt::format("{} picture{} in {}", good_, good_ == 1 ? "" : "s", lines_.path().string());
    if (bad_ > 0) text += fmt::format("; {} could not be used", bad_);
    if (bad_regions_ == 0) return text;
    return text + fmt::format("; {} region{} could not be used", bad_regions_,
                              bad_regions_ == 1 ? "" : "s");
  }

  const fs::path& input_;
  const std::vector<fs::path>& pictures_;
  LineFile lines_;
  std::optional<LineFile> table_;
  size_t columns_ = 0;
  size_t good_ = 0;
  size_t bad_ = 0;
  size_t good_regions_ = 0;
  size_t bad_regions_ = 0;
  size_t without_number_ = 0;  // good pictures with a probability that is none
};

/// Collects pictures for the first network, until the batch is full or another shape comes.
class PictureBatch {
 public:
  PictureBatch(Predictor& predictor, const std::vector<std::string>& names, Outcomes& outcomes)
      : predictor_(predictor), names_(names), outcomes_(outcomes) {}

  void add(Loaded loaded) {
    if (!loaded.fault.empty()) return outcomes_.add(loaded.picture, {false, loaded.fault});
    if (!samples_.empty() && !same_shape(samples_.back().image, loaded.sample.image)) flush();
    numbers_.push_back(loaded.picture);
    samples_.push_back(std::move(loaded.sample));
    if (samples_.size() >= predictor_.batch()) flush();
  }

  void flush() {
    if (samples_.empty()) return;
    std::vector<std::string> names;
    for (const size_t number : numbers_) names.push_back(names_[number]);
    auto found = predictor_(samples_, names);
    for (size_t i = 0; i < found.size(); ++i) outcomes_.add(numbers_[i], std::move(found[i]));
    numbers_.clear();
    samples_.clear();
  }

 private:
  Predictor& predictor_;
  const std::vector<std::string>& names_;
  Outcomes& outcomes_;
  std::vector<size_t> numbers_;
  Samples samples_;
};

}  // namespace

int run_prediction(const PredictPlan& plan, World world) {
  const auto pictures = ocr::find_pictures(plan.input, plan.output);
  const auto names = ocr::result_names(pictures, plan.input);
  const Config& config = plan.first().config;
  const auto device = take_compute_device(config, world);
  set_threads(threads_of(config.parallel, world));
  Predictor predictor(plan, device);
  make_folder(plan.output);

  Meter meter(pictures.size(), world.rank == 0);
  ResultFiles results(plan, pictures);
  Outcomes outcomes(world, pictures.size(), [&](const Outcome& one) {
    results.add(one);
    meter.count(one);
  });
  PictureBatch batch(predictor, names, outcomes);
  const auto size = static_cast<size_t>(world.size);
  const auto first = static_cast<size_t>(world.rank);
  const size_t own = pictures.size() > first ? (pictures.size() - first + size - 1) / size : 0;
  const int threads = data_threads(picture_loader(config), workers_of(world));
  cv::setNumThreads(1);
  Prefetcher<Loaded> loading(threads, threads + static_cast<int64_t>(predictor.batch()));
  loading.start(static_cast<int64_t>(own), [&](int64_t item) {
    const size_t number = first + static_cast<size_t>(item) * size;
    return load(predictor, number, pictures[number]);
  });
  while (auto loaded = loading.next(Deadline::after(kPicture))) batch.add(std::move(*loaded));
  batch.flush();
  outcomes.finish();
  meter.finish();
  if (world.rank == 0) results.finish();
  return 0;
}

}  // namespace lockstep::inline internal
