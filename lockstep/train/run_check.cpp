#include <fmt/format.h>

#include <cstdio>

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
  return count_cifar10(config.data_dirs.front(),
                       config.usage == "train" ? Split::kTrain : Split::kTest);
}

}  // namespace

int run_check(const Config& config, const World& world) {
  check_world(config, world);
  auto group = ProcessGroup::create(world, group_options(config.parallel));
  const auto model = make_model(config.model, config.system.seed);
  const auto optimizer = make_optimizer(config.optimizer, *model);
  const auto resumed = resume(config, false, *model, *optimizer);
  check_same_start(resumed.state.step, resumed.from, group);
  check_classes(Cifar10::kClasses, config.model.head.num_classes);
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
  plan.num_shards = shards_of(config, world).total;
  const int64_t records = count_records(config.train.dataset);
  plan.samples_known = records > 0;
  plan.train_samples =
      samples_used(config.train.dataset, plan.samples_known ? records : kOfficialTrainImages);
  plan = complete_plan(plan, config, state_copies(config.optimizer), transform.output().numel());
  require_batch(plan.steps_per_epoch, plan.samples_a_shard, config.train.loader.batch_size);
  check_resumable(resumed.state, config, plan.num_shards, plan.steps_per_epoch);
  fmt::print("{}\n{}", write_yaml(config.effective), describe(plan, config));
  return 0;
}

}  // namespace lockstep
