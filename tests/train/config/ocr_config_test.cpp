// Detectors and recognisers: their values, and the errors of bad ones.

#include <gtest/gtest.h>

#include "tests/train/config/configs.h"

namespace lockstep {
namespace {

/// The error of one override names it, and contains `what`.
void expect_fault(const char* text, const std::string& item, const std::string& what) {
  const std::string error = fault_in(text, {item});
  EXPECT_NE(error.find(what), std::string::npos) << item << ": " << error;
  EXPECT_EQ(error.find('\n'), std::string::npos);
}

TEST(OcrConfig, DetectorHasMindocrsDefaults) {
  const Config config = read_text(kDetector);
  EXPECT_EQ(config.model.type, ModelType::kDet);
  EXPECT_EQ(config.model.name(), "det_resnet18-DBFPN-DBHead");
  EXPECT_EQ(config.model.neck.out_channels, 256);
  EXPECT_EQ(config.model.head.k, 50);
  EXPECT_TRUE(config.model.head.adaptive);
  EXPECT_FALSE(config.model.backbone.dcn);
  const auto& loss = std::get<DbLossConfig>(config.loss);
  EXPECT_TRUE(loss.l1_scale == 10 && loss.bce_scale == 5 && !loss.dice_for_bce);
  EXPECT_EQ(std::get<ocr::DbPostprocessOptions>(config.postprocess).box_thresh, 0.7);
  EXPECT_EQ(config.metric.main_indicator, "f-score");
  EXPECT_FALSE(config.metric.det.one_to_one);
  EXPECT_EQ(config.train.dataset.data_dirs, std::vector<std::filesystem::path>{"root/images"});
  EXPECT_TRUE(config.train.dataset.shuffle);
  EXPECT_EQ(std::get<ocr::NormalizeImage>(config.train.dataset.pipeline.at(5)).mean,
            ocr::kImageNetMean);
  EXPECT_FALSE(config.optimizer.exact_decay);
}

TEST(OcrConfig, RecogniserHasMindocrsDefaults) {
  const Config config = read_text(kRecogniser);
  EXPECT_EQ(config.model.neck.hidden_size, 8);
  EXPECT_EQ(config.model.head.weight_init, "normal");
  EXPECT_EQ(config.metric.main_indicator, "acc");
  EXPECT_TRUE(config.metric.rec.lower && config.metric.rec.ignore_space);
  EXPECT_EQ(config.train.dataset.data_dirs.size(), 2u);
  EXPECT_EQ(config.train.dataset.sample_ratios, std::vector<double>{1});
  const auto& encode = std::get<ocr::RecCTCLabelEncode>(config.train.dataset.pipeline.at(1));
  EXPECT_TRUE(encode.max_text_len == 23 && encode.characters.lower);
}

TEST(OcrConfig, ListsOfDataSets) {
  const std::vector<std::string> two = {"train.dataset.data_dir=[a, /b]",
                                        "train.dataset.label_file=[a.txt, b.txt]"};
  auto overrides = two;
  EXPECT_EQ(read_text(kDetector, overrides).train.dataset.data_dirs[1], "/b");
  overrides.emplace_back("train.dataset.sample_ratio=[0.5, 1]");
  EXPECT_EQ(read_text(kDetector, overrides).train.dataset.sample_ratios,
            (std::vector<double>{0.5, 1}));
  overrides.back() = "train.dataset.sample_ratio=0.25";
  EXPECT_EQ(read_text(kDetector, overrides).train.dataset.sample_ratios,
            (std::vector<double>{0.25, 0.25}));
  overrides.back() = "train.dataset.sample_ratio=[1, 1, 1]";
  EXPECT_NE(fault_in(kDetector, overrides).find("a list of 2, one for each data_dir, not of 3"),
            std::string::npos);
  EXPECT_NE(fault_in(kDetector, {two[0]}).find("label_file must be as many as data_dir (2), not 1"),
            std::string::npos);
}

TEST(OcrConfig, RangesOfRandomTransforms) {
  const Config config = read_text(
      kDetector, {"train.dataset.transform_pipeline=[DecodeImage: , DetLabelEncode: , "
                  "RandomColorAdjust: {brightness: 0.25, saturation: [0.5, 2], contrast: 3}, "
                  "RandomScale: {scale_range: [3, 0.5]}, RandomRotate: {degrees: [-5, 5]}, "
                  "ShrinkBinaryMap: , BorderMap: , ToCHWImage: ]"});
  const auto& pipeline = config.train.dataset.pipeline;
  const auto& color = std::get<ocr::RandomColorAdjust>(pipeline.at(2));
  EXPECT_EQ(color.brightness, (std::array{0.75, 1.25}));
  EXPECT_EQ(color.saturation, (std::array{0.5, 2.0}));
  EXPECT_EQ(color.contrast, (std::array{0.0, 4.0}));
  const auto& scale = std::get<ocr::RandomScale>(pipeline.at(3));
  EXPECT_EQ(scale.scale_range, (std::array{0.5, 3.0}));
  EXPECT_EQ(scale.p, 0.5);
  EXPECT_EQ(std::get<ocr::RandomRotate>(pipeline.at(4)).degrees, (std::array{-5, 5}));
}

TEST(OcrConfig, WhatMindocrWroteOtherwiseInItsFirstReleases) {
  std::string text = kDetector;
  const size_t begin = text.find("    net_input_column_index");
  text = text.substr(0, begin) + "    num_columns_to_net: 1\n" + text.substr(text.find("  loader"));
  const Config config = read_text(
      text,
      {"loss={name: L1BalancedCELoss, bce_scale: 6}", "postprocess={output_polygon: True}",
       "train.dataset.transform_pipeline=[DecodeImage: , DetLabelEncode: , "
       "IaaAugment: {Affine: {rotate: [-10, 10]}, Fliplr: {p: 0.5}}, GridResize: {factor: 16}, "
       "DetResize: {target_size: [64, 64], limit_type: None}, "
       "ScalePadImage: {target_size: [96, 128]}, "
       "ShrinkBinaryMap: , BorderMap: , ToCHWImage: ]"});
  EXPECT_EQ(std::get<DbLossConfig>(config.loss).bce_scale, 6);
  EXPECT_EQ(std::get<ocr::DbPostprocessOptions>(config.postprocess).box_type,
            ocr::DbPostprocessOptions::Box::kPoly);
  const auto& pipeline = config.train.dataset.pipeline;
  const auto& turn = std::get<ocr::RandomRotate>(pipeline.at(2));
  EXPECT_EQ(turn.degrees, (std::array{-10, 10}));
  EXPECT_FALSE(turn.expand_canvas);
  EXPECT_EQ(turn.p, 1);
  EXPECT_EQ(turn.name, "IaaAugment.Affine");
  const auto& flip = std::get<ocr::RandomHorizontalFlip>(pipeline.at(3));
  EXPECT_EQ(flip.p, 0.5);
  EXPECT_EQ(flip.name, "IaaAugment.Fliplr");
  const auto& grid = std::get<ocr::DetResize>(pipeline.at(4));
  EXPECT_EQ(grid.divisor, 16);
  EXPECT_EQ(grid.limit_type, ocr::DetResize::Limit::kNone);
  EXPECT_EQ(grid.name, "GridResize");
  EXPECT_EQ(std::get<ocr::DetResize>(pipeline.at(5)).name, "DetResize");
  const auto& scaled = std::get<ocr::DetResize>(pipeline.at(6));
  EXPECT_TRUE(scaled.exact && scaled.padding && !scaled.force_divisable);
  EXPECT_EQ(scaled.target_size, (std::array{96, 128}));
  EXPECT_EQ(scaled.name, "ScalePadImage");
  EXPECT_NE(fault_in(text, {"train.dataset.num_columns_to_net=2"})
                .find("the networks here take the image alone"),
            std::string::npos);
}

TEST(OcrConfig, PredictMayNameWeightsAlone) {
  const Config config = read_text(kDetector, {"predict.ckpt_load_path=best.ckpt"});
  EXPECT_EQ(config.predict.value().ckpt_load_path, "best.ckpt");
  EXPECT_FALSE(config.predict->dataset);
}

TEST(OcrConfig, TheDetectorOfPpOcrV3) {
  const std::vector<std::string> parts = {
      "model.backbone={name: det_mobilenet_v3_enhance, architecture: large, alpha: 0.5, "
      "disable_se: True, pretrained: False}",
      "model.neck={name: RSEFPN, out_channels: 96, shortcut: True}",
      "model.head.name=DBHeadEnhance"};
  const Config config = read_text(kDetector, parts);
  EXPECT_EQ(config.model.backbone.alpha, 0.5);
  EXPECT_TRUE(config.model.backbone.disable_se);
  EXPECT_EQ(config.model.neck.out_channels, 96);
  EXPECT_TRUE(config.model.neck.shortcut);
  auto other = parts;
  other.push_back("model.backbone.alpha=0.6");
  EXPECT_NE(fault_in(kDetector, other).find("must be 0.35, 0.5, 0.75, 1 or 1.25, not 0.6"),
            std::string::npos);
}

TEST(OcrConfig, NamesOfMindocrThatAreNotBuiltIn) {
  expect_fault(kDetector, "model.backbone.name=mobilenet_v1_enhance",
               "model.backbone.name cannot be 'mobilenet_v1_enhance', which is not built in");
  expect_fault(kDetector, "model.neck.name=PSEFPN", "not built in: one of DBFPN, RSEFPN");
  expect_fault(kDetector, "model.head.name=DBhead", "did you mean 'DBHead'?");
  expect_fault(kDetector, "loss.name=PSEDiceLoss", "loss.name");
  expect_fault(kDetector, "model.backbone.name=rec_vgg7", "model.backbone.name must be one of");
  expect_fault(kRecogniser, "train.dataset.type=DetDataset", "one of RecDataset, LMDBDataset");
  expect_fault(kDetector, "train.dataset.type=PublayNetDataset", "not built in");
}

TEST(OcrConfig, FaultsOfPipelines) {
  const std::string key = "train.dataset.transform_pipeline=";
  expect_fault(kDetector, key + "[DecodeImage: , ScalePadImage: ]", "target_size is missing");
  expect_fault(kDetector, key + "[DecodImage: ]", "did you mean 'DecodeImage'?");
  expect_fault(kDetector, key + "[ToCHWImage: ]", "must begin with DecodeImage");
  expect_fault(kDetector, key + "[DecodeImage: {imgmode: RGB}]", "did you mean 'img_mode'?");
  expect_fault(kDetector, key + "[DecodeImage: , RandomCropWithBBox: {crop_size: [640]}]",
               "crop_size must be a list of 2 whole numbers");
  expect_fault(kDetector, key + "[DecodeImage: , DetLabelEncode: , BorderMap: , ToCHWImage: ]",
               "must hold ShrinkBinaryMap, which makes the column binary_map");
  expect_fault(kDetector, key + "[DecodeImage: , NormalizeImage: {std: 0}]", "std must be");
}

TEST(OcrConfig, ColumnsAreWhatTheLossTakes) {
  const std::string key = "train.dataset.";
  expect_fault(kDetector, key + "label_column_index=[2, 1, 3, 4]",
               "must give the loss [binary_map, mask, thresh_map, thresh_mask], not [mask, ");
  expect_fault(kDetector, key + "net_input_column_index=[1]", "must give the network [image]");
  expect_fault(kDetector, key + "output_columns=[image]", "label_column_index must be a list");
  expect_fault(kRecogniser, key + "output_columns=[image, label]", "[text_seq], not [label]");
  EXPECT_EQ(fault_in(kRecogniser, {key + "output_columns=[image, text_seq, length]"}), "");
}

TEST(OcrConfig, SectionsOfARecogniserAgree) {
  expect_fault(kRecogniser, "loss.max_label_len=20", "loss.max_label_len must be 23");
  expect_fault(kRecogniser, "loss.pred_seq_len=23", "must be above max_label_len (23)");
  expect_fault(kRecogniser, "model.head.out_channels=38", "out_channels must be 37, not 38");
  expect_fault(kRecogniser, "postprocess.character_dict_path=d.txt", "RecCTCLabelEncode");
  expect_fault(kRecogniser, "train.dataset.filter_max_len=True", "max_text_len is missing");
  expect_fault(kRecogniser, "train.dataset.random_choice_if_none=False", "must be True: a sample");
  read_text(kRecogniser, {"train.dataset.random_choice_if_none=True"});
}

TEST(OcrConfig, OptimizersHaveTheirOwnDefaults) {
  EXPECT_EQ(read_text(kRecogniser, {"optimizer.opt=Lion"}).optimizer.beta2, 0.99);
  EXPECT_EQ(read_text(kRecogniser, {"optimizer.opt=rmsprop"}).optimizer.eps, 1e-10);
  EXPECT_EQ(read_text(kRecogniser, {"optimizer.opt=adan"}).optimizer.beta1, 0.98);
  EXPECT_TRUE(
      read_text(kRecogniser, {"optimizer.weight_decay_groups=exact"}).optimizer.exact_decay);
  expect_fault(kRecogniser, "optimizer.accum=1", "unknown key 'optimizer.accum'");
}

TEST(OcrConfig, AKeyOneLevelTooHighIsFound) {
  expect_fault(kRecogniser, "train.data_dir=x",
               "unknown key 'train.data_dir', did you mean 'train.dataset.data_dir'?");
}

}  // namespace
}  // namespace lockstep
