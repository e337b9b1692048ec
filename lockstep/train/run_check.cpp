#include <fmt/format.h>

#include <cstdio>

#include "lockstep/comm/backends.h"
#include "lockstep/data/cifar10.h"
#include "lockstep/train/config/yaml_writer.h"
#include "lockstep/train/optim/optimizer.h"
#include "lockstep/train/plan.h"
#include "lockstep/train/resume.h"
#include "lockstep/train/run.h"
#include "lockstep/train/setup.h"

namespace lockstep {
namespace {

constexpr int64_t kOfficialTrainImages = 50000;
constexpr ImageShape kCifarShape{3, 32, 32};

int64_t count_records(const DatasetConfig& config) {
  return count_cifar10(config.data_dir, config.usage == "train" ? Split::kTrain : Split::kTest);
}

}  // namespace

int run_check(const Config& config, const World& world) {
  check_world(config, world);
  choose_backend(config.parallel.backend, GroupSpec{});
  const auto model = make_model(config.model, config.system.seed);
  const auto optimizer = make_optimizer(config.optimizer, *model);
  resume(config, *model, *optimizer);
  const auto transform =
      make_image_transform(config.train.dataset, kCifarShape, config.system.seed);
  if (config.eval) {
    make_image_transform(config.eval->dataset, kCifarShape, config.system.seed);
    count_records(config.eval->dataset);
  }
  if (world.rank != 0) return 0;
  RunPlan plan;
  plan.parameters = count_parameters(*model, true);
  plan.trainable = count_parameters(*model);
  plan.num_ranks = world.size;
  plan.train_samples = count_records(config.train.dataset);
  plan.samples_known = plan.train_samples > 0;
  if (!plan.samples_known) plan.train_samples = kOfficialTrainImages;
  plan = complete_plan(plan, config, state_copies(config.optimizer), transform.output().numel());
  require_batch(plan.steps_per_epoch, plan.samples_a_rank, config.train.loader.batch_size);
  fmt::print("{}\n{}", write_yaml(config.effective), describe(plan, config));
  return 0;
}

}  // namespace lockstep
