#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "lockstep/data/cifar10.h"
#include "lockstep/train/config/yaml_writer.h"
#include "lockstep/train/optim/optimizer.h"
#include "lockstep/train/plan.h"
#include "lockstep/train/run.h"
#include "lockstep/train/setup.h"

namespace lockstep {
namespace {

constexpr int64_t kOfficialTrainImages = 50000;
constexpr ImageShape kCifarShape{3, 32, 32};

/// Records by the files' sizes; 0 when there are none.
int64_t count_records(const DatasetConfig& config) {
  const auto dir = find_cifar10(config.data_dir);
  if (dir.empty()) return 0;
  int64_t bytes = 0;
  for (const auto& name : cifar10_files(config.usage == "train" ? Split::kTrain : Split::kTest)) {
    std::error_code error;
    const auto size = std::filesystem::file_size(dir / name, error);
    if (!error) bytes += static_cast<int64_t>(size);
  }
  return bytes / Cifar10::kRecordBytes;
}

}  // namespace

int run_check(const Config& config, const World& world) {
  check_world(config, world);
  const auto model = make_model(config.model, config.system.seed);
  make_optimizer(config.optimizer, *model);
  const auto transform =
      make_image_transform(config.train.dataset, kCifarShape, config.system.seed);
  if (config.eval) make_image_transform(config.eval->dataset, kCifarShape, config.system.seed);
  if (world.rank != 0) return 0;
  RunPlan plan;
  plan.parameters = count_parameters(*model, true);
  plan.trainable = count_parameters(*model);
  plan.num_ranks = world.size;
  plan.train_samples = count_records(config.train.dataset);
  plan.samples_known = plan.train_samples > 0;
  if (!plan.samples_known) plan.train_samples = kOfficialTrainImages;
  plan = complete_plan(plan, config, state_copies(config.optimizer), transform.output().numel());
  fmt::print("{}\n{}", write_yaml(config.effective), describe(plan, config));
  return 0;
}

}  // namespace lockstep
