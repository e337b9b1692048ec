#include "lockstep/train/wrapped_data.h"

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "lockstep/base/log.h"
#include "lockstep/batch.h"
#include "lockstep/data/pixel_form.h"
#include "lockstep/error.h"
#include "lockstep/train/setup.h"
#include "lockstep/train/task_parts.h"

namespace lockstep::inline internal {
namespace {

/// The leading samples of a data set. A caller of one's own may have wrong numbers.
class LeadingSamples final : public BatchMaker {
 public:
  LeadingSamples(std::unique_ptr<const BatchMaker> all, int64_t size, std::string type)
      : all_(std::move(all)), size_(size), type_(std::move(type)) {}

  int64_t size() const override { return size_; }
  Batch make(const BatchRows& rows) const override {
    for (const int64_t sample : rows.samples) {
      if (sample >= 0 && sample < size_) continue;
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{} has no sample {}: it has 0 to {}", type_, sample, size_ - 1));
    }
    return all_->make(rows);
  }

 private:
  std::unique_ptr<const BatchMaker> all_;
  int64_t size_;
  std::string type_;  ///< For errors.
};

/// Errors: the settings were read for the other use.
void check_use(const WrappedDataset& dataset, const DatasetUse& use) {
  if (dataset.training && *dataset.training != use.training) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: {} has the settings of section {}, and cannot be made for {}",
                    dataset.config.where, dataset.config.type, use.training ? "eval" : "train",
                    use.training ? "training" : "evaluation"));
  }
  if (use.training) return;
  for (const auto& item : dataset.config.transforms) {
    if (!draws_numbers(item.step)) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: a random transform of {}: evaluation is not random, and needs "
                            "settings of its own",
                            item.where, dataset.config.type));
  }
}

/// A class less than in training would give others its number.
void warn_of_own_classes(const WrappedDataset& dataset) {
  const DatasetConfig& config = dataset.config;
  if (dataset.training != false || dataset.of_training) return;
  if (config.type != "ImageFolderDataset" && config.type != "ImageListDataset") return;
  log_warn(
      fmt::format("{}: train.dataset has no {} within it: the classes of this one are "
                  "numbered by itself, and must be all of training",
                  config.where, config.type));
}

/// A run with this data set, or in `train` with that of training. Else its classes are its own.
Config config_with(const WrappedDataset& dataset, const DatasetUse& use) {
  Config config;
  config.system.seed = static_cast<int64_t>(use.seed);
  config.model.type = dataset.task;
  // Unknown here. The trainer checks the labels of registered data sets.
  config.model.head.num_classes = std::numeric_limits<int32_t>::max();
  auto& settings = config.train.dataset;
  settings = dataset.config;
  if (settings.usage.empty()) settings.usage = use.training ? "train" : "test";
  config.eval.emplace().dataset = settings;
  if (dataset.of_training) settings = *dataset.of_training;
  return config;
}

}  // namespace

DatasetMaker wrapped_dataset_maker(const WrappedDataset& dataset) {
  return [dataset](const DatasetUse& use) -> std::unique_ptr<const BatchMaker> {
    check_use(dataset, use);
    const auto config = config_with(dataset, use);
    DataParts parts;
    auto maker = task_parts(config).make_batches(config, use.training, PixelForm::kFloats, parts);
    for (const auto& line : parts.warnings) log_warn(line);
    for (const auto& line : parts.notes) log_info(line);
    if (!use.training) warn_of_own_classes(dataset);
    return std::make_unique<const LeadingSamples>(std::move(maker), parts.samples,
                                                  dataset.config.type);
  };
}

}  // namespace lockstep::inline internal
