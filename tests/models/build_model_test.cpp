#include "lockstep/models/build/build_model.h"
#include "lockstep/models/backbone/resnet.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/relu.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/conv.h>
#include <torch/utils.h>

#include <cmath>

#include "tests/models/specs.h"

namespace lockstep {
namespace {

int64_t parameters_of(const std::string& backbone, Stem stem, int64_t num_classes) {
  return count_parameters(*build_model(
      {.backbone = {.name = backbone, .stem = stem}, .head = {.num_classes = num_classes}}));
}

TEST(BuildModel, HasThePublishedNumberOfParameters) {
  EXPECT_EQ(parameters_of("resnet18", Stem::kImageNet, 1000), 11'689'512);
  EXPECT_EQ(parameters_of("resnet34", Stem::kImageNet, 1000), 21'797'672);
  EXPECT_EQ(parameters_of("resnet50", Stem::kImageNet, 1000), 25'557'032);
  EXPECT_EQ(parameters_of("resnet101", Stem::kImageNet, 1000), 44'549'160);
  EXPECT_EQ(parameters_of("resnet152", Stem::kImageNet, 1000), 60'192'808);
  EXPECT_EQ(parameters_of("cls_resnet18", Stem::kCifar, 10), 11'173'962);
  EXPECT_EQ(parameters_of("cls_resnet50", Stem::kCifar, 10), 23'520'842);
}

TEST(BuildModel, CountsRunningStatisticsOnRequest) {
  const auto model = build_model(
      {.backbone = {.name = "resnet18", .stem = Stem::kCifar}, .head = {.num_classes = 10}});
  EXPECT_EQ(count_parameters(*model, /*buffers=*/true), 11'173'962 + 9'600);
}

TEST(BuildModel, GivesOneRowOfLogitsAnImage) {
  at::NoGradGuard no_grad;
  for (const char* backbone : {"resnet18", "resnet50"}) {
    auto cifar = build_model(
        {.backbone = {.name = backbone, .stem = Stem::kCifar}, .head = {.num_classes = 10}});
    EXPECT_EQ(cifar->forward(at::ones({2, 3, 32, 32})).sizes(), at::IntArrayRef({2, 10}));
    auto imagenet = build_model({.backbone = {.name = backbone}, .head = {.num_classes = 7}});
    EXPECT_EQ(imagenet->forward(at::ones({2, 3, 64, 96})).sizes(), at::IntArrayRef({2, 7}));
  }
}

TEST(BuildModel, BackboneShrinksByEightOrThirtyTwo) {
  at::NoGradGuard no_grad;
  EXPECT_EQ(make_resnet(18, Stem::kCifar)->forward(at::ones({1, 3, 32, 32})).sizes(),
            at::IntArrayRef({1, 512, 4, 4}));
  EXPECT_EQ(make_resnet(50, Stem::kImageNet)->forward(at::ones({2, 3, 64, 64})).sizes(),
            at::IntArrayRef({2, 2048, 2, 2}));
}

// MindCV pads its max-pool at the end only, so its weights need the same features here.
TEST(BuildModel, MindCvStemPoolsAsTheDetectorsBackbone) {
  at::NoGradGuard no_grad;
  torch::manual_seed(1);
  const auto detector = make_det_resnet(18, /*dcn=*/false);
  const auto image = at::rand({1, 3, 64, 64});
  const auto features = [&](Stem stem) {
    torch::manual_seed(1);
    const auto backbone = make_resnet(18, stem);
    const auto values = detector->named_parameters();
    for (const auto& item : backbone->named_parameters()) {
      item.value().copy_(values[item.key()]);
    }
    backbone->eval();
    return backbone->forward(image);
  };
  detector->eval();
  const auto wanted = detector->forward(image);
  EXPECT_TRUE(at::equal(features(Stem::kMindCv), wanted));
  EXPECT_FALSE(at::allclose(features(Stem::kImageNet), wanted));
}

// MindSpore's tutorial: padding "same" everywhere, so the 7x7 convolution has 2 before and 3
// behind.
TEST(BuildModel, MindSporeStemPadsAsTheTutorial) {
  at::NoGradGuard no_grad;
  const auto image = at::rand({1, 3, 64, 64});
  const auto backbone = make_resnet(18, Stem::kMindSpore);
  const auto weights = backbone->named_parameters();
  const auto padded = at::constant_pad_nd(image, {2, 3, 2, 3});
  auto wanted = at::conv2d(padded, weights["conv1.weight"], {}, 2);
  wanted = at::constant_pad_nd(at::relu(wanted / std::sqrt(1 + 1e-5)), {0, 1, 0, 1});
  // The rest of the network as the identity: what the first block adds to is the pool's output.
  backbone->eval();
  for (const auto& item : weights) {
    if (item.key().ends_with("bn2.weight")) item.value().zero_();
  }
  const auto maps = backbone->features(image);
  EXPECT_TRUE(at::allclose(maps[0], at::max_pool2d(wanted, 3, 2), 1e-4, 1e-5));
}

TEST(BuildModel, MindSporeBottlenecksHaveTheirStrideFirst) {
  for (const auto stem : {Stem::kMindSpore, Stem::kMindCv}) {
    const auto modules = make_resnet(50, stem)->named_modules();
    const auto stride = [&](const std::string& name) {
      return (*modules[name]->as<torch::nn::Conv2dImpl>()->options.stride())[0];
    };
    const bool first = stem == Stem::kMindSpore;
    for (const char* stage : {"layer2", "layer3", "layer4"}) {
      EXPECT_EQ(stride(std::string(stage) + ".0.conv1"), first ? 2 : 1);
      EXPECT_EQ(stride(std::string(stage) + ".0.conv2"), first ? 1 : 2);
      EXPECT_EQ(stride(std::string(stage) + ".1.conv1"), 1);
    }
  }
}

TEST(BuildModel, MindSporeNetworkStartsAsTheTutorials) {
  const auto model = build_model(
      {.backbone = {.name = "resnet50", .stem = Stem::kMindSpore}, .head = {.num_classes = 10}});
  EXPECT_EQ(count_parameters(*model), 23'528'522);
  auto values = model->named_parameters();
  const auto bound = [&](const char* name) { return values[name].abs().max().item<double>(); };
  const double xavier = std::sqrt(6.0 / (64 * 9 + 64 * 9));
  EXPECT_LE(bound("layer1.0.conv2.weight"), xavier);
  EXPECT_GT(bound("layer1.0.conv2.weight"), 0.99 * xavier);
  for (const char* name : {"bn1.weight", "layer4.2.bn3.weight", "fc.bias"}) {
    EXPECT_LE(bound(name), 0.07) << name;
    EXPECT_GT(bound(name), 0.04) << name;
  }
  EXPECT_EQ(bound("bn1.bias"), 0);
  model->train();
  model->forward(at::ones({2, 3, 32, 32}));
  const auto variance = model->named_buffers()["bn1.running_var"];
  EXPECT_TRUE(at::allclose(variance, at::full_like(variance, 0.99), 0, 0.01));
}

TEST(BuildModel, EveryParameterGetsAGradient) {
  auto model = build_model(
      {.backbone = {.name = "resnet18", .stem = Stem::kCifar}, .head = {.num_classes = 10}});
  model->forward(at::ones({2, 3, 32, 32})).square().sum().backward();
  for (const auto& parameter : model->named_parameters()) {
    EXPECT_TRUE(parameter.value().grad().defined()) << parameter.key();
  }
}

TEST(BuildModel, EvaluationModeReachesEveryModule) {
  auto model = build_model(
      {.backbone = {.name = "resnet18", .stem = Stem::kCifar}, .head = {.num_classes = 10}});
  model->eval();
  for (const auto& module : model->modules()) EXPECT_FALSE(module->is_training());
}

TEST(BuildModel, OneSeedOneNetwork) {
  const ModelSpec spec{.backbone = {.name = "resnet18", .stem = Stem::kCifar},
                       .head = {.num_classes = 10}};
  torch::manual_seed(3);
  const auto a = build_model(spec);
  torch::manual_seed(3);
  const auto b = build_model(spec);
  torch::manual_seed(4);
  const auto c = build_model(spec);
  EXPECT_TRUE(a->parameters().front().equal(b->parameters().front()));
  EXPECT_TRUE(a->parameters().back().equal(b->parameters().back()));
  EXPECT_FALSE(a->parameters().front().equal(c->parameters().front()));
}

TEST(BuildModel, ZeroInitResidualMakesBlocksIdentities) {
  auto spec = ModelSpec{.backbone = {.name = "resnet50", .stem = Stem::kCifar},
                        .head = {.num_classes = 10}};
  EXPECT_EQ(build_model(spec)->named_parameters()["layer2.1.bn3.weight"].sum().item<float>(), 512);
  spec.backbone.zero_init_residual = true;
  auto parameters = build_model(spec)->named_parameters();
  EXPECT_EQ(parameters["layer2.1.bn3.weight"].sum().item<float>(), 0);
  EXPECT_EQ(parameters["layer2.1.bn2.weight"].sum().item<float>(), 128);
}

TEST(BuildModel, NamesTheNearestModel) {
  EXPECT_NE(why_not({.backbone = {.name = "resnet5O"}}).find("did you mean 'resnet50'?"),
            std::string::npos);
  EXPECT_NE(why_not({.head = {.name = "ClassHead"}}).find("did you mean 'ClsHead'?"),
            std::string::npos);
  EXPECT_NE(why_not({.backbone = {.name = "vgg"}}).find("Known: resnet18"), std::string::npos);
  EXPECT_NE(why_not({.head = {.num_classes = 0}}).find("num_classes is 0"), std::string::npos);
  EXPECT_NE(why_not({.backbone = {.stem = Stem::kMindSpore, .zero_init_residual = true}})
                .find("zero_init_residual goes with the other stems"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep
