#include "lockstep/train/config/parameter_names.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "lockstep/error.h"
#include "lockstep/train/config/overrides.h"
#include "lockstep/train/config/yaml_reader.h"
#include "lockstep/train/config/yaml_writer.h"

namespace lockstep {
namespace {

using NameList = std::vector<std::string>;

const NameList kNamesOfResnet = {"conv1.weight",
                                 "bn1.weight",
                                 "bn1.bias",
                                 "layer1.0.conv1.weight",
                                 "layer1.0.bn1.weight",
                                 "layer1.1.conv1.weight",
                                 "layer2.0.conv1.weight",
                                 "layer2.0.downsample.0.weight",
                                 "layer2.1.conv1.weight",
                                 "fc.weight",
                                 "fc.bias"};

TEST(ParameterNames, PatternsSelectNamesAndWhatIsInAModule) {
  EXPECT_TRUE(selects("layer1", "layer1.0.conv1.weight"));
  EXPECT_TRUE(selects("layer1.*", "layer1.0.conv1.weight"));
  EXPECT_TRUE(selects("layer1.?.conv1", "layer1.0.conv1.weight"));
  EXPECT_TRUE(selects("layer[12]", "layer2.0.conv1.weight"));
  EXPECT_TRUE(selects("*.bias", "layer1.0.bn1.bias"));
  EXPECT_TRUE(selects("*", "fc.weight"));
  EXPECT_TRUE(selects("fc.weight", "fc.weight"));
  EXPECT_FALSE(selects("layer1", "layer10.weight"));
  EXPECT_FALSE(selects("conv1", "layer1.0.conv1.weight"));
  EXPECT_FALSE(selects("*.bias", "bias"));
  EXPECT_FALSE(selects("fc.weight", "fc.weight_2"));
}

/// The message of the error that `body` throws.
template <class Body>
std::string group_refusal(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "no error";
}

GroupConfig group_with(const NameList& params) {
  GroupConfig group;
  group.params = params;
  group.where = "a.yaml:7";
  return group;
}

TEST(ParameterNames, TheFirstGroupThatSelectsCounts) {
  const std::vector<GroupConfig> groups = {group_with({"*.bias"}), group_with({"fc", "conv1"})};
  EXPECT_EQ(group_of(groups, "fc.bias"), 0);
  EXPECT_EQ(group_of(groups, "fc.weight"), 1);
  EXPECT_EQ(group_of(groups, "conv1.weight"), 1);
  EXPECT_EQ(group_of(groups, "bn1.weight"), -1);
  check_groups(groups, kNamesOfResnet);
}

std::string refusal_of_groups(const std::vector<GroupConfig>& groups) {
  return group_refusal([&] { check_groups(groups, kNamesOfResnet); });
}

TEST(ParameterNames, APatternThatSelectsNothingIsRefusedWithTheNearest) {
  EXPECT_EQ(refusal_of_groups({group_with({"fc", "layr2.*"})}),
            "a.yaml:7: optimizer.groups: 'layr2.*' selects no parameter of the network, did you "
            "mean 'layer2.*'? (it has conv1, bn1, layer1, layer2, fc)");
  EXPECT_EQ(refusal_of_groups({group_with({"head"})}),
            "a.yaml:7: optimizer.groups: 'head' selects no parameter of the network (it has conv1, "
            "bn1, layer1, layer2, fc)");
  EXPECT_EQ(refusal_of_groups({group_with({"*"}), group_with({"fc"})}),
            "a.yaml:7: optimizer.groups: 'fc' has no effect: earlier groups have all its "
            "parameters, and the first group that selects a parameter counts");
}

// The numbers of timm 1.0's group_parameters() with the matchers of ResNet and VisionTransformer.
TEST(LayerDecay, LayersAreThoseOfTimm) {
  EXPECT_EQ(layers_of(kNamesOfResnet), (std::vector<int64_t>{0, 0, 0, 1, 1, 2, 3, 3, 4, 5, 5}));
  EXPECT_EQ(layers_of({"cls_token", "pos_embed", "patch_embed.proj.weight", "blocks.0.norm1.weight",
                       "blocks.0.attn.qkv.weight", "blocks.1.norm1.weight", "norm.weight",
                       "head.weight"}),
            (std::vector<int64_t>{0, 0, 0, 1, 1, 2, 2, 3}));
}

TEST(LayerDecay, OtherNetworksHaveBlocksOrModules) {
  // torchvision's ViT: its blocks have numbers behind "_".
  EXPECT_EQ(layers_of({"class_token", "conv_proj.weight", "encoder.pos_embedding",
                       "encoder.layers.encoder_layer_0.ln_1.weight",
                       "encoder.layers.encoder_layer_1.ln_1.weight", "encoder.ln.weight",
                       "heads.head.weight"}),
            (std::vector<int64_t>{0, 0, 0, 1, 2, 2, 3}));
  // The classifier's own numbers make no layers.
  EXPECT_EQ(layers_of({"features.0.0.weight", "features.1.block.0.0.weight", "classifier.0.weight",
                       "classifier.3.weight"}),
            (std::vector<int64_t>{0, 1, 2, 2}));
  EXPECT_EQ(layers_of({"first.weight", "first.bias", "inner.weight", "last.weight"}),
            (std::vector<int64_t>{0, 0, 1, 2}));
  EXPECT_EQ(layers_of({"layers.0.weight", "layers.2.weight", "layers.4.weight"}),
            (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(layers_of({"0.weight", "2.weight"}), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(layers_of({}), std::vector<int64_t>{});
}

TEST(LayerDecay, RatesFallTowardsTheInput) {
  const auto scales = layer_scales(0.5, kNamesOfResnet);
  EXPECT_EQ(scales.front(), std::pow(0.5, 5));
  EXPECT_EQ(scales[6], 0.25);
  EXPECT_EQ(scales.back(), 1);
  EXPECT_EQ(layer_scales(1, kNamesOfResnet), std::vector<double>(kNamesOfResnet.size(), 1));
}

constexpr auto kFileWithGroups = R"(model:
  backbone: {name: resnet18}
  head: {num_classes: 10}
scheduler: {lr: 0.1}
optimizer:
  groups:
    - {params: fc, lr: 0.5, weight_decay: 0.01}
    - params: [conv1, "layer1.*"]
      frozen: True
      keep_statistics: True
train:
  ckpt_save_dir: out
  dataset: {data_dir: d}
  loader: {batch_size: 32}
)";

Config read_groups_of(const std::vector<std::string>& overrides) {
  Node tree = parse_yaml(kFileWithGroups, "a.yaml");
  apply_overrides(tree, overrides);
  return read_config(std::move(tree));
}

TEST(OptimizerGroups, AreReadFromTheFile) {
  const auto config = read_groups_of({"optimizer.layer_decay=0.75"});
  EXPECT_EQ(config.optimizer.layer_decay, 0.75);
  ASSERT_EQ(config.optimizer.groups.size(), 2U);
  const auto& head = config.optimizer.groups[0];
  EXPECT_EQ(head.params, NameList{"fc"});
  EXPECT_DOUBLE_EQ(*head.lr_scale, 5);
  EXPECT_EQ(head.weight_decay, 0.01);
  EXPECT_FALSE(head.frozen);
  EXPECT_EQ(head.where, "a.yaml:7");
  const auto& rest = config.optimizer.groups[1];
  EXPECT_EQ(rest.params, (NameList{"conv1", "layer1.*"}));
  EXPECT_TRUE(rest.frozen && rest.keep_statistics && !rest.lr_scale);
  EXPECT_NE(write_yaml(config.effective).find("keep_statistics: False"), std::string::npos);
}

TEST(OptimizerGroups, MistakesAreOneLine) {
  const std::map<std::string, std::string> refused = {
      {"optimizer.groups=3", "optimizer.groups must be a list of mappings"},
      {"optimizer.groups=[{frozen: True}]", "optimizer.groups[0].params is missing"},
      {"optimizer.groups=[{params: [], frozen: True}]", "must have at least one pattern"},
      {"optimizer.groups=[{params: fc, lr_scael: 3}]",
       "unknown key 'optimizer.groups[0].lr_scael', did you mean 'lr_scale'?"},
      {"optimizer.groups=[{params: fc, lr_scale: 3, lr: 1}]", "lr and lr_scale exclude each other"},
      {"optimizer.groups=[{params: fc, lr_scale: 0}]", "must be a number from 1e-09 to"},
      {"optimizer.groups=[{params: fc, frozen: True, lr: 1}]", "excludes lr_scale, lr and"},
      {"optimizer.groups=[{params: fc, keep_statistics: True}]", "needs frozen: True"},
      {"scheduler.lr=0", "scheduler.lr must be greater than 0"},
      {"optimizer.layer_decay=1.5", "must be a number from 1e-06 to 1"}};
  for (const auto& [item, why] : refused) {
    const auto text = group_refusal([&, given = item] { read_groups_of({given}); });
    EXPECT_NE(text.find(why), std::string::npos) << item << ": " << text;
  }
}

}  // namespace
}  // namespace lockstep
