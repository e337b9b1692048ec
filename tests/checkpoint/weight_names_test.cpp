#include "lockstep/checkpoint/weight_names.h"

#include <gtest/gtest.h>

#include "lockstep/checkpoint/timm_names.h"
#include "lockstep/checkpoint/weight_table.h"
#include "tests/support/error_of.h"

namespace lockstep {
namespace {

using namespace std::string_literals;
using Matches = std::vector<std::optional<size_t>>;

TEST(MatchNames, MindSporeNamesAreOurs) {
  EXPECT_EQ(match_names({"backbone.bn1.weight", "backbone.bn1.bias", "backbone.bn1.running_mean",
                         "backbone.bn1.running_var", "backbone.layer1.0.downsample.1.weight",
                         "backbone.conv1.weight", "head.dense1.bias"},
                        {"backbone.conv1.weight", "backbone.bn1.gamma", "backbone.bn1.beta",
                         "backbone.bn1.moving_mean", "backbone.bn1.moving_variance",
                         "backbone.layer1.0.down_sample.1.gamma", "epoch_num"}),
            (Matches{1, 2, 3, 4, 5, 0, std::nullopt}));
}

TEST(MatchNames, ThePartOfANetworkMatchesWithoutItsPrefix) {
  EXPECT_EQ(match_names({"backbone.conv1.weight", "backbone.bn1.weight", "head.conv1.weight"},
                        {"bn1.weight", "conv1.weight", "fc.weight"}, "backbone."),
            (Matches{1, 0, std::nullopt}));
}

TEST(MatchNames, DdpAndTheLastLayer) {
  EXPECT_EQ(match_names({"fc.weight", "bn1.weight"}, {"module.fc.weight", "module.bn1.weight"}),
            (Matches{0, 1}));
  EXPECT_EQ(match_names({"fc.weight"}, {"classifier.weight"}), (Matches{0}));
}

TEST(MatchNames, TheSameNameWins) {
  EXPECT_EQ(match_names({"a.gamma", "b.weight"}, {"a.weight", "a.gamma", "b.gamma", "b.weight"}),
            (Matches{1, 3}));
}

TEST(MatchNames, TimmsTransformersAndConvNexts) {
  EXPECT_EQ(
      match_names({"class_token", "encoder.layers.encoder_layer_11.self_attention.in_proj_bias",
                   "encoder.ln.weight", "heads.head.bias", "features.5.8.layer_scale",
                   "features.4.1.weight", "classifier.2.weight"},
                  {"cls_token", "module.blocks.11.attn.qkv.bias", "norm.weight", "head.bias",
                   "stages.2.blocks.8.gamma", "stages.2.downsample.1.weight", "head.fc.weight"}),
      (Matches{0, 1, 2, 3, 4, 5, 6}));
}

TEST(MatchNamesByPrefix, LeavesOutWhatLightningAndCompileAdd) {
  const std::vector<std::string> network = {"conv1.weight", "bn1.weight", "fc.bias"};
  for (const std::string prefix : {"model.", "_orig_mod.", "module.model.", "a.b.c.d."}) {
    const auto found = match_names_by_prefix(
        network, {"loss.weight", prefix + "bn1.gamma", prefix + "conv1.weight"});
    EXPECT_EQ(found.stripped, prefix);
    EXPECT_EQ(found.of_network, (Matches{2, 1, std::nullopt}));
    EXPECT_EQ(found.count, 2U);
  }
  EXPECT_EQ(match_names_by_prefix(network, {"module.fc.bias"}).stripped, "") << "DDP's as ever";
  EXPECT_EQ(match_names_by_prefix({"backbone.a.w"}, {"net.a.w"}, "backbone.").stripped, "net.");
}

TEST(MatchNamesByPrefix, GuessesNothingWhereNamesMatchOrFewWould) {
  const std::vector<std::string> network = {"a.w", "b.w", "c.w", "d.w"};
  const auto half = match_names_by_prefix(network, {"a.w", "b.w", "net.c.w", "net.d.w"});
  EXPECT_EQ(half.stripped, "") << "four names are no more than twice two";
  EXPECT_EQ(half.count, 2U);
  EXPECT_EQ(match_names_by_prefix(network, {"net.a.w", "net.x.w", "net.y.w"}).count, 0U);
  EXPECT_EQ(match_names_by_prefix(network, {"net.a.w", "net.b.w", "net.y.w"}).count, 2U);
  EXPECT_EQ(match_names_by_prefix(network, {"netaw", "", "."}).count, 0U);
}

TEST(MatchNamesByPrefix, AChanceMatchDoesNotPreventIt) {
  const auto found = match_names_by_prefix({"a.w", "b.w", "c.w", "fc.w"},
                                           {"fc.w", "net.a.w", "net.b.w", "net.c.w"});
  EXPECT_EQ(found.stripped, "net.");
  EXPECT_EQ(found.of_network, (Matches{1, 2, 3, 0}));
}

// Two networks of one shape, as in MoCo: that with fewer other names, then the first in the file.
TEST(MatchNamesByPrefix, TakesTheOneWithWhichMostMatch) {
  const std::vector<std::string> network = {"a.w", "b.w"};
  EXPECT_EQ(match_names_by_prefix(network, {"k.a.w", "q.a.w", "q.b.w"}).stripped, "q.");
  const auto equal = match_names_by_prefix(network, {"q.a.w", "q.b.w", "k.a.w", "k.b.w"});
  EXPECT_EQ(equal.stripped, "q.");
  EXPECT_EQ(equal.runner_up, "k.");
  const auto other = match_names_by_prefix(network, {"q.a.w", "q.b.w", "q.x", "k.a.w", "k.b.w"});
  EXPECT_EQ(other.stripped, "k.");
  EXPECT_EQ(other.runner_up, "q.");
  EXPECT_EQ(match_names_by_prefix(network, {"q.module.a.w", "q.module.b.w"}).runner_up, "")
      << "'q.' and 'q.module.' are the same choice";
}

TEST(MatchNamesByPrefix, OnlyWhatFitsCounts) {
  const std::vector<std::string> network = {"a.w", "b.w"};
  const auto fits = [](size_t, size_t in_file) { return in_file >= 2; };
  const auto found = match_names_by_prefix(network, {"t.a.w", "t.b.w", "s.a.w", "s.b.w"}, "", fits);
  EXPECT_EQ(found.stripped, "s.");
  EXPECT_EQ(found.runner_up, "");
  EXPECT_EQ(found.count, 2U);
  const auto plain = match_names_by_prefix(network, {"a.w", "b.w"}, "", fits);
  EXPECT_EQ(plain.of_network, (Matches{0, 1})) << "they are reported";
  EXPECT_EQ(plain.count, 0U);
}

TEST(TorchvisionName, IsOneForKnownNamesOnly) {
  EXPECT_EQ(torchvision_name("blocks.3.mlp.fc2.weight"),
            "encoder.layers.encoder_layer_3.mlp.3.weight");
  EXPECT_EQ(torchvision_name("encoder.layers.encoder_layer_3.mlp.linear_2.weight"),
            "encoder.layers.encoder_layer_3.mlp.3.weight");
  EXPECT_EQ(torchvision_name("stem.1.bias"), "features.0.1.bias");
  EXPECT_EQ(torchvision_name("stages.0.blocks.2.norm.weight"), "features.1.2.block.2.weight");
  for (const char* other :
       {"", "fc.weight", "blocks.x.norm1.bias", "blocks.", "blocks.12345.norm1."}) {
    EXPECT_EQ(torchvision_name(other), "") << other;
  }
}

// The second name of each pair is torchvision's.
using NamePairs = std::vector<std::pair<std::string, std::string>>;

void expect_names(const NamePairs& pairs) {
  std::vector<std::string> file, expected;
  for (const auto& [timm, torchvision] : pairs) {
    file.push_back(timm);
    expected.push_back(torchvision);
  }
  EXPECT_EQ(torchvision_names(file), expected);
}

TEST(TorchvisionNames, CountTheBlocksOfAMobileNet) {
  expect_names({{"conv_stem.weight", "features.0.0.weight"},
                {"bn1.running_var", "features.0.1.running_var"},
                {"blocks.0.0.conv_dw.weight", "features.1.block.0.0.weight"},
                {"blocks.0.0.bn1.weight", "features.1.block.0.1.weight"},
                {"blocks.0.0.conv_pw.weight", "features.1.block.1.0.weight"},
                {"blocks.0.0.bn2.num_batches_tracked", "features.1.block.1.1.num_batches_tracked"},
                {"blocks.1.0.conv_pw.weight", "features.2.block.0.0.weight"},
                {"blocks.1.0.bn1.bias", "features.2.block.0.1.bias"},
                {"blocks.1.0.conv_pwl.weight", "features.2.block.2.0.weight"},
                {"blocks.1.0.bn3.bias", "features.2.block.2.1.bias"},
                {"blocks.1.1.conv_dw.weight", "features.3.block.1.0.weight"},
                {"blocks.1.1.bn2.bias", "features.3.block.1.1.bias"},
                {"blocks.1.1.se.conv_reduce.weight", "features.3.block.2.fc1.weight"},
                {"blocks.1.1.se.conv_expand.bias", "features.3.block.2.fc2.bias"},
                {"blocks.1.1.conv_pwl.weight", "features.3.block.3.0.weight"},
                {"blocks.2.0.conv.weight", "features.4.0.weight"},
                {"blocks.2.0.bn1.bias", "features.4.1.bias"},
                {"conv_head.bias", "classifier.0.bias"},
                {"classifier.weight", "classifier.3.weight"},
                {"blocks.2.0.conv", ""},
                {"blocks.1.1.other.weight", ""},
                {"norm.weight", ""}});
}

TEST(TorchvisionNames, CountTheStagesOfAnEfficientNet) {
  expect_names({{"conv_stem.weight", "features.0.0.weight"},
                {"blocks.0.0.conv_dw.weight", "features.1.0.block.0.0.weight"},
                {"blocks.0.0.se.conv_reduce.bias", "features.1.0.block.1.fc1.bias"},
                {"blocks.0.0.conv_pw.weight", "features.1.0.block.2.0.weight"},
                {"blocks.0.0.bn2.weight", "features.1.0.block.2.1.weight"},
                {"blocks.1.1.conv_pw.weight", "features.2.1.block.0.0.weight"},
                {"blocks.1.1.se.conv_expand.weight", "features.2.1.block.2.fc2.weight"},
                {"blocks.1.1.conv_pwl.weight", "features.2.1.block.3.0.weight"},
                {"blocks.1.1.bn3.running_mean", "features.2.1.block.3.1.running_mean"},
                {"conv_head.weight", "features.3.0.weight"},
                {"bn2.weight", "features.3.1.weight"},
                {"classifier.bias", "classifier.1.bias"}});
}

TEST(TorchvisionNames, AreThoseOfSingleNamesInOtherFiles) {
  expect_names({{"cls_token", "class_token"},
                {"blocks.0.norm1.weight", "encoder.layers.encoder_layer_0.ln_1.weight"},
                {"blocks.0.0.conv_dw.weight", ""}});
}

TEST(MindSporeNames, AreThoseThatMindOcrReads) {
  EXPECT_EQ(mindspore_names({"backbone.bn1.bias", "backbone.bn1.num_batches_tracked",
                             "backbone.bn1.running_mean", "backbone.bn1.running_var",
                             "backbone.bn1.weight", "backbone.layer1.0.downsample.0.weight",
                             "fc.bias", "neck.seq_encoder.weight_ih_l0_reverse"}),
            (std::vector<std::string>{"backbone.bn1.beta", "", "backbone.bn1.moving_mean",
                                      "backbone.bn1.moving_variance", "backbone.bn1.gamma",
                                      "backbone.layer1.0.down_sample.0.weight", "classifier.bias",
                                      "neck.seq_encoder.weight_ih_l0_reverse"}));
}

TEST(WeightFormat, TheContentTells) {
  const auto format = [](const std::string& bytes) {
    return weight_format(MemoryBytes("x", bytes));
  };
  EXPECT_EQ(format("\x02\0\0\0\0\0\0\0{}"s), WeightFormat::kSafetensors);
  EXPECT_EQ(format("PK\x03\x04 and so on"), WeightFormat::kPyTorch);
  EXPECT_EQ(format("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."),
            WeightFormat::kPyTorch);
  EXPECT_EQ(format("\x0a\x22\x0a\x09 and so on"), WeightFormat::kMindSpore);
  const auto fault = [&](const std::string& bytes) {
    return std::string(error_of([&] { format(bytes); }).what());
  };
  EXPECT_EQ(fault(""),
            "x: no file of weights (known: safetensors, MindSpore's .ckpt, PyTorch's .pth)");
}

}  // namespace
}  // namespace lockstep
