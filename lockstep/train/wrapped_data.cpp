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

/// The leading samples of a data set.
class LeadingSamples final : public BatchMaker {
 public:
  LeadingSamples(std::unique_ptr<const BatchMaker> all, int64_t size)
      : all_(std::move(all)), size_(size) {}

  int64_t size() const override { return size_; }
  Batch make(const BatchRows& rows) const override { return all_->make(rows); }

 private:
  std::unique_ptr<const BatchMaker> all_;
  int64_t size_;
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

/// A run with this data set in both sections. Its classes are thus its own.
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
    if (parts.samples == maker->size()) return maker;
    return std::make_unique<const LeadingSamples>(std::move(maker), parts.samples);
  };
}

}  // namespace lockstep::inline internal
