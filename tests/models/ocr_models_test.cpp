// DBNet and CRNN built by name: sizes, shapes, names, initial values.
#include <ATen/ops/linspace.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <cmath>

#include "lockstep/amp/master_weights.h"
#include "lockstep/autocast.h"
#include "lockstep/models/backbone/det_mobilenet_v3.h"
#include "lockstep/models/backbone/det_mobilenet_v3_enhance.h"
#include "lockstep/models/backbone/rec_backbones.h"
#include "lockstep/models/necks.h"
#include "tests/models/specs.h"
#include "tests/support/error_of.h"

namespace lockstep {
namespace {

/// Trainable parameters, and all with batch norm's statistics.
std::pair<int64_t, int64_t> counts_of(const ModelSpec& spec) {
  const auto model = build_model(spec);
  return {count_parameters(*model), count_parameters(*model, /*buffers=*/true)};
}

using Counts = std::pair<int64_t, int64_t>;

TEST(OcrModels, HaveMindocrsNumberOfParameters) {
  EXPECT_EQ(counts_of(dbnet("det_resnet18")), Counts(12'340'930, 12'351'042));
  EXPECT_EQ(counts_of(dbnet("det_resnet50")), Counts(25'409'730, 25'463'362));
  EXPECT_EQ(counts_of(dbnet("det_resnet50", /*asf=*/true)), Counts(25'559'564, 25'613'196));
  EXPECT_EQ(counts_of(crnn("rec_vgg7")).first, 8'725'413);
  EXPECT_EQ(counts_of(crnn("rec_resnet34")), Counts(24'481'029, 24'498'309));
  EXPECT_EQ(counts_of(crnn("rec_resnet34", 6624, 64)).first, 22'557'888);
}

TEST(OcrModels, MobileNetHasThePublishedNumberOfParameters) {
  // torchvision's mobilenet_v3_large and _small without their classifiers.
  BackboneSpec spec;
  EXPECT_EQ(count_parameters(*make_det_mobilenet_v3(spec)), 5'483'032 - 2'511'080);
  spec.architecture = "small";
  EXPECT_EQ(count_parameters(*make_det_mobilenet_v3(spec)), 2'542'856 - 1'615'848);
}

at::Tensor run(Model& model, at::IntArrayRef shape, bool training) {
  const torch::NoGradGuard no_grad;
  model.train(training);
  return model.forward(at::rand(shape));
}

TEST(OcrModels, DbnetGivesThreeMapsInTrainingAndOneElse) {
  for (auto spec : {dbnet("det_resnet18"), dbnet("det_resnet18", true), dbnet_mobilenet()}) {
    spec.neck.out_channels = 16;
    const auto model = build_model(spec);
    EXPECT_EQ(run(*model, {2, 3, 64, 96}, true).sizes(), at::IntArrayRef({2, 3, 64, 96}));
    EXPECT_EQ(run(*model, {1, 3, 64, 96}, false).sizes(), at::IntArrayRef({1, 1, 64, 96}));
    EXPECT_EQ(run(*model, {1, 3, 37, 50}, false).sizes(), at::IntArrayRef({1, 1, 40, 52}));
  }
}

TEST(OcrModels, WithoutAdaptiveThereIsOneBranch) {
  auto spec = dbnet("det_resnet18");
  spec.neck.out_channels = 16;
  spec.head.adaptive = false;
  const auto model = build_model(spec);
  EXPECT_EQ(run(*model, {2, 3, 32, 32}, true).sizes(), at::IntArrayRef({2, 1, 32, 32}));
  EXPECT_FALSE(model->named_parameters().contains("head.thresh.0.weight"));
}

TEST(OcrModels, TheApproximateStepIsMindocrsOrThePapers) {
  auto spec = dbnet("det_resnet18");
  spec.neck.out_channels = 16;
  for (const bool paper : {false, true}) {
    spec.head.name = paper ? "DBHeadEnhance" : "DBHead";
    const auto maps = run(*build_model(spec), {2, 3, 32, 32}, true);
    const auto b = maps.select(1, 0), t = maps.select(1, 1);
    const auto expected = (paper ? 50 * (b - t) : 50 * b - t).sigmoid();
    EXPECT_TRUE(maps.select(1, 2).allclose(expected, 1e-5, 1e-6));
  }
}

TEST(OcrModels, CrnnGivesLogitsInTrainingAndProbabilitiesElse) {
  for (const auto& [backbone, frames] : {std::pair("rec_vgg7", 24), {"rec_resnet34", 25}}) {
    const auto model = build_model(crnn(backbone, 11, 8));
    EXPECT_EQ(run(*model, {2, 3, 32, 100}, true).sizes(), at::IntArrayRef({frames, 2, 11}));
    const auto p = run(*model, {2, 3, 32, 100}, false);
    EXPECT_EQ(p.sizes(), at::IntArrayRef({2, frames, 11}));
    EXPECT_TRUE(p.is_contiguous());
    EXPECT_NEAR(p.sum().item<double>(), 2.0 * frames, 1e-3);
  }
}

TEST(OcrModels, WiderLinesHaveMoreFrames) {
  const torch::NoGradGuard no_grad;
  EXPECT_EQ(make_rec_resnet34()->forward(at::rand({1, 3, 32, 320})).size(3), 80);
  EXPECT_EQ(make_rec_resnet34()->forward(at::rand({1, 3, 32, 101})).size(3), 26);
  EXPECT_EQ(make_rec_vgg7()->forward(at::rand({1, 3, 32, 320})).size(3), 79);
}

TEST(OcrModels, MobileNetsStagesHaveTheirStrides) {
  const torch::NoGradGuard no_grad;
  const auto backbone = make_det_mobilenet_v3(dbnet_mobilenet().backbone);
  EXPECT_EQ(backbone->feature_channels(), (std::vector<int64_t>{16, 24, 56, 480}));
  const auto maps = backbone->features(at::rand({1, 3, 64, 96}));
  ASSERT_EQ(maps.size(), 4U);
  for (size_t i = 0; i < maps.size(); ++i) {
    EXPECT_EQ(maps[i].sizes(),
              at::IntArrayRef({1, backbone->feature_channels()[i], 16 >> i, 24 >> i}));
  }
}

ModelSpec ppocr_v3() {
  ModelSpec spec;
  spec.backbone = {.name = "det_mobilenet_v3_enhance", .alpha = 0.5, .disable_se = true};
  spec.neck = {.name = "RSEFPN", .out_channels = 96};
  spec.head.name = "DBHeadEnhance";
  return spec;
}

TEST(OcrModels, TheDetectorOfPpOcrV3HasItsStagesAndNames) {
  const torch::NoGradGuard no_grad;
  auto spec = ppocr_v3().backbone;
  for (const bool small : {false, true}) {
    spec.architecture = small ? "small" : "large";
    const auto backbone = make_det_mobilenet_v3_enhance(spec);
    EXPECT_EQ(backbone->feature_channels(), small ? (std::vector<int64_t>{8, 16, 24, 288})
                                                  : (std::vector<int64_t>{16, 24, 56, 480}));
    const auto maps = backbone->features(at::rand({1, 3, 64, 96}));
    ASSERT_EQ(maps.size(), 4U);
    for (size_t i = 0; i < maps.size(); ++i) {
      EXPECT_EQ(maps[i].sizes(),
                at::IntArrayRef({1, backbone->feature_channels()[i], 16 >> i, 24 >> i}));
    }
  }
  const auto model = build_model(ppocr_v3());
  EXPECT_EQ(count_parameters(*model), 398'480 + 158'424 + 46'514) << "backbone, neck, head";
  const auto names = model->named_parameters();
  for (const char* name : {"backbone.conv.bn.weight", "backbone.stages.0.2.linear_conv.conv.weight",
                           "backbone.stages.3.3.conv.weight", "neck.ins_conv.3.in_conv.weight",
                           "neck.inp_conv.0.se_block.conv2.bias", "head.segm.0.weight"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  EXPECT_EQ(run(*model, {2, 3, 64, 96}, true).sizes(), at::IntArrayRef({2, 3, 64, 96}));
}

TEST(OcrModels, NearestPlacesKeepCorners) {
  using Places = std::vector<int64_t>;
  EXPECT_EQ(nearest_places(2, 4), (Places{0, 0, 1, 1}));
  EXPECT_EQ(nearest_places(3, 6), (Places{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(nearest_places(3, 5), (Places{0, 1, 1, 2, 2})) << "halves are rounded up";
  EXPECT_EQ(nearest_places(4, 8), (Places{0, 0, 1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(nearest_places(1, 3), (Places{0, 0, 0}));
  EXPECT_EQ(nearest_places(5, 1), Places{0});
}

TEST(OcrModels, EveryParameterGetsAGradient) {
  auto small = dbnet("det_resnet50", /*asf=*/true);
  small.neck.out_channels = 16;
  for (const auto& spec : {small, dbnet_mobilenet(), ppocr_v3(), crnn("rec_vgg7", 7, 8)}) {
    torch::manual_seed(1);
    auto model = build_model(spec);
    model->forward(at::rand({2, 3, 32, 64})).square().sum().backward();
    for (const auto& parameter : model->named_parameters()) {
      EXPECT_TRUE(parameter.value().grad().defined()) << parameter.key();
    }
  }
}

TEST(OcrModels, LearnInMixedPrecision) {
  auto db = dbnet("det_resnet18", /*asf=*/true);
  db.neck.out_channels = 16;
  db.backbone.dcn = true;
  for (const auto level : {AmpLevel::kO1, AmpLevel::kO2, AmpLevel::kO3}) {
    for (const auto& spec : {db, crnn("rec_vgg7", 7, 8)}) {
      torch::manual_seed(2);
      auto model = build_model(spec);
      cast_module(*model, level, at::kBFloat16);
      const auto out = forward_at(level, at::rand({2, 3, 32, 64}),
                                  [&](const at::Tensor& x) { return model->forward(x); });
      EXPECT_TRUE(out.isfinite().all().item<bool>());
      // Probabilities of text have more bits than bfloat16.
      const bool rounded = out.equal(out.to(at::kBFloat16).to(at::kFloat));
      EXPECT_EQ(rounded, spec.head.name != "DBHead");
      out.square().sum().backward();
      for (const auto& parameter : model->named_parameters()) {
        EXPECT_TRUE(parameter.value().grad().defined()) << parameter.key();
      }
    }
  }
}

std::vector<std::string> names_of(const ModelSpec& spec, const std::string& prefix) {
  std::vector<std::string> names;
  for (const auto& name : build_model(spec)->named_parameters().keys()) {
    if (name.starts_with(prefix)) names.push_back(name.substr(prefix.size()));
  }
  return names;
}

TEST(OcrModels, NamesFollowMindocrsCells) {
  const auto parameters = build_model(dbnet("det_resnet18", /*asf=*/true))->named_parameters();
  for (const char* name :
       {"backbone.conv1.weight", "backbone.layer2.0.downsample.1.bias",
        "neck.unify_channels.3.weight", "neck.out.0.weight", "neck.fuse.conv.bias",
        "neck.fuse.chan_att.2.weight", "neck.fuse.spat_att.0.weight",
        "neck.fuse.scale_att.0.weight", "head.segm.1.weight", "head.thresh.6.bias"}) {
    EXPECT_TRUE(parameters.contains(name)) << name;
  }
  using Names = std::vector<std::string>;
  EXPECT_EQ(
      names_of(dbnet_mobilenet(), "backbone.features.6."),
      (Names{"layers.0.weight", "layers.1.weight", "layers.1.bias", "layers.3.weight",
             "layers.4.weight", "layers.4.bias", "layers.6.conv_reduce.weight",
             "layers.6.conv_reduce.bias", "layers.6.conv_expand.weight",
             "layers.6.conv_expand.bias", "layers.7.weight", "layers.8.weight", "layers.8.bias"}));
  EXPECT_EQ(names_of(crnn("rec_resnet34"), "backbone.block_list.3."),
            (Names{"conv0.conv.weight", "conv0.norm.weight", "conv0.norm.bias", "conv1.conv.weight",
                   "conv1.norm.weight", "conv1.norm.bias", "short.conv.weight", "short.norm.weight",
                   "short.norm.bias"}));
  EXPECT_EQ(names_of(crnn("rec_vgg7"), "backbone.conv3."),
            (Names{"conv.weight", "conv.bias", "bn.weight", "bn.bias"}));
}

/// The largest magnitude of a parameter, and its standard deviation.
std::pair<double, double> spread(const Model& model, const std::string& name) {
  const auto value = model.named_parameters()[name].detach();
  return {value.abs().max().item<double>(), value.std().item<double>()};
}

TEST(OcrModels, StartValuesAreTheSpecified) {
  torch::manual_seed(9);
  const auto db = build_model(dbnet("det_resnet18"));
  const auto [fpn, fpn_deviation] = spread(*db, "neck.out.0.weight");
  EXPECT_NEAR(fpn, std::sqrt(6.0 / (256 * 9)), 1e-4);  // HeUniform
  EXPECT_NEAR(fpn_deviation, std::sqrt(2.0 / (256 * 9)), 1e-4);
  EXPECT_NEAR(spread(*db, "head.segm.3.weight").first, std::sqrt(6.0 / (64 * 4)), 1e-3);
  EXPECT_NEAR(spread(*db, "backbone.layer4.1.conv2.weight").second, std::sqrt(2.0 / (512 * 9)),
              1e-4);
  auto spec = crnn("rec_vgg7");
  const auto vgg = build_model(spec);
  const auto [largest, deviation] = spread(*vgg, "backbone.conv6.conv.weight");
  EXPECT_LE(largest, 0.04);
  EXPECT_GT(largest, 0.0399);
  EXPECT_NEAR(deviation, 0.02 * 0.8796, 1e-4);  // a normal distribution cut at 2 deviations
  EXPECT_NEAR(spread(*vgg, "head.dense1.weight").second, 0.01, 3e-4);
  EXPECT_EQ(spread(*vgg, "head.dense1.bias").first, 0);
  spec.head.weight_init = spec.head.bias_init = "crnn_customised";
  const auto custom = build_model(spec);
  EXPECT_NEAR(spread(*custom, "head.dense1.weight").first, 1 / std::sqrt(512.0), 1e-4);
  EXPECT_GT(spread(*custom, "head.dense1.bias").first, 0);
  const auto mobile = build_model(dbnet_mobilenet());
  EXPECT_NEAR(spread(*mobile, "backbone.features.18.weight").second, std::sqrt(2.0 / 480), 2e-3);
  EXPECT_NEAR(spread(*mobile, "backbone.features.6.layers.6.conv_reduce.weight").second, 0.01,
              2e-3);
}

TEST(OcrModels, CtcHeadMayHaveTwoLayers) {
  auto spec = crnn("rec_vgg7", 11, 8);
  spec.head.mid_channels = 5;
  spec.head.dropout = 0.5;
  const auto model = build_model(spec);
  EXPECT_EQ(model->named_parameters()["head.dense2.weight"].sizes(), at::IntArrayRef({11, 5}));
  EXPECT_EQ(run(*model, {2, 3, 32, 100}, true).sizes(), at::IntArrayRef({24, 2, 11}));
}

TEST(OcrModels, RefuseWhatCannotBe) {
  auto spec = dbnet("det_resnet18");
  spec.head.name = "CTCHead";
  EXPECT_EQ(why_not(spec),
            "backbone det_resnet18 goes with neck DBFPN and head DBHead, not with neck DBFPN and "
            "head CTCHead");
  spec = crnn("rec_vgg7");
  spec.neck.name = "";
  EXPECT_NE(why_not(spec).find("not with neck none and head CTCHead"), std::string::npos);
  spec.neck.name = "RNNEncode";
  EXPECT_NE(why_not(spec).find("did you mean 'RNNEncoder'?"), std::string::npos);
  spec = crnn("rec_vgg7", 1);
  EXPECT_NE(why_not(spec).find("out_channels is 1"), std::string::npos);
  spec = crnn("rec_vgg7");
  spec.head.weight_init = "xavier";
  EXPECT_NE(why_not(spec).find("weight_init 'xavier' (normal, crnn_customised)"),
            std::string::npos);
  spec = dbnet_mobilenet();
  spec.backbone.out_stages = {5, 8, 14, 21};
  EXPECT_NE(why_not(spec).find("[5, 8, 14, 21]; ascending places from 0 to 20"), std::string::npos);
  spec.backbone.out_stages = {5, 8, 14};
  EXPECT_NE(why_not(spec).find("takes 4 feature maps, the backbone gives 3"), std::string::npos);
  auto rse = spec;
  rse.neck.name = "RSEFPN";
  EXPECT_NE(why_not(rse).find("RSEFPN takes 4 feature maps, the backbone gives 3"),
            std::string::npos);
  rse = ppocr_v3();
  rse.neck.out_channels = 24;
  EXPECT_EQ(why_not(rse), "model.neck.out_channels is 24; RSEFPN takes a multiple of 16");
  spec.backbone.architecture = "huge";
  EXPECT_NE(why_not(spec).find("architecture is 'huge' (large, small)"), std::string::npos);
}

TEST(OcrModels, ALineOfAnotherHeightIsNamed) {
  const auto model = build_model(crnn("rec_vgg7", 11, 8));
  const auto error = error_of([&] { model->forward(at::rand({1, 3, 64, 100})); });
  EXPECT_NE(std::string(error.what()).find("32 rows high"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
