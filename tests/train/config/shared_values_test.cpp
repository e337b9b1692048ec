#include "lockstep/train/config/shared_values.h"

#include <gtest/gtest.h>

#include "lockstep/train/config/overrides.h"
#include "lockstep/train/config/yaml_reader.h"

namespace lockstep {
namespace {

constexpr auto kConfig = R"(model:
  type: cls
  backbone: {name: resnet18, stem: cifar}
  head: {num_classes: 10}
scheduler: {lr: 1e-3, milestones: [3, 5]}
train:
  ckpt_save_dir: out
  dataset: {data_dir: d, transform_pipeline: [{RandomCrop: {size: 32}}, {ToCHWImage: }]}
  loader: {batch_size: 32}
)";

std::map<std::string, std::string> values_with(const std::vector<std::string>& overrides) {
  Node tree = parse_yaml(kConfig, "a.yaml");
  apply_overrides(tree, overrides);
  return shared_values(read_config(std::move(tree)));
}

/// The message if rank 1 has these additional overrides.
std::string difference(const std::vector<std::string>& overrides) {
  return first_difference(values_with(overrides), "rank 1", values_with({}), "rank 0");
}

TEST(SharedValues, NamesTheKeyThatDiffersAndBothValues) {
  EXPECT_EQ(difference({"scheduler.lr=0.7"}), "scheduler.lr is 0.7 on rank 1, 0.001 on rank 0");
  EXPECT_EQ(difference({"system.seed=43"}), "system.seed is 43 on rank 1, 42 on rank 0");
  EXPECT_EQ(difference({"scheduler.milestones=[3, 6]"}),
            "scheduler.milestones is [3, 6] on rank 1, [3, 5] on rank 0");
  EXPECT_EQ(difference({"train.ckpt_save_dir=out2"}),
            "train.ckpt_save_dir is out2 on rank 1, out on rank 0");
  EXPECT_EQ(difference({"train.loader.batch_size=16", "train.max_steps=1", "train.ema=True"}),
            "train.ema is True on rank 1, False on rank 0 (2 other keys differ)");
  EXPECT_EQ(difference({"train.dataset.sample_ratio=0.5", "train.max_steps=1"}),
            "train.dataset.sample_ratio is 0.5 on rank 1, 1 on rank 0 (1 other key differs)");
}

TEST(SharedValues, APipelineIsComparedStepByStep) {
  EXPECT_EQ(difference({"train.dataset.transform_pipeline=[{RandomCrop: {size: 28}}, "
                        "{ToCHWImage: }]"}),
            "train.dataset.transform_pipeline[0].RandomCrop.size is 28 on rank 1, 32 on rank 0");
  EXPECT_EQ(difference({"train.dataset.transform_pipeline=[{RandomCrop: {size: 32}}]"}),
            "train.dataset.transform_pipeline[1].ToCHWImage is absent on rank 1, {} on rank 0");
}

TEST(SharedValues, WhatIsWrittenOtherwiseIsTheSame) {
  EXPECT_EQ(difference({"scheduler.lr=0.001", "train.ckpt_save_dir=./x/../out/",
                        "train.loader.shuffle=yes", "train.dataset.sample_ratio=1.0",
                        "scheduler.milestones=[3,5]",
                        "train.dataset.transform_pipeline=[{RandomCrop: {padding: 4}}, "
                        "{ToCHWImage: {}}]"}),
            "");
}

TEST(SharedValues, HostsMayDifferInWhatIsTheirs) {
  EXPECT_EQ(difference({"train.dataset.data_dir=/disk2/d", "train.dataset.dataset_root=/x",
                        "train.loader.num_workers=3", "train.loader.prefetch_size=9",
                        "parallel.threads=3", "system.device_id=1", "system.log_interval=1",
                        "system.log_level=logging.DEBUG", "model.resume=/disk2/out"}),
            "");
}

// The bits of virtual ranks depend on them.
TEST(SharedValues, ThreadsAreTheSameWithVirtualRanks) {
  const auto with = [](const std::string& threads) {
    return values_with({"parallel.virtual_ranks=2", "parallel.threads=" + threads});
  };
  EXPECT_EQ(first_difference(with("2"), "rank 1", with("1"), "rank 0"),
            "parallel.threads is 2 on rank 1, 1 on rank 0");
}

}  // namespace
}  // namespace lockstep
