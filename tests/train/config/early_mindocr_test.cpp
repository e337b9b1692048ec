// Whole recipes with all keys of MindOCR 0.1's recipes for DBNet and CRNN.

#include <gtest/gtest.h>

#include <string>

#include "lockstep/train/config/config.h"
#include "lockstep/train/config/yaml_reader.h"

namespace lockstep {
namespace {

/// The beginning of a data set's section; `steps`: its pipeline after the first step.
std::string data_set(const std::string& type, const std::string& dir, bool shuffle,
                     const std::string& mode, const std::string& steps) {
  return "  dataset:\n    type: " + type + "\n    dataset_root: root\n    data_dir: " + dir +
         "\n    sample_ratio: 1.0\n    shuffle: " + (shuffle ? "True" : "False") +
         "\n    transform_pipeline:\n      - DecodeImage: {img_mode: " + mode +
         ", to_float32: False}\n" + steps;
}

/// All keys of the detector's recipe.
std::string early_detector() {
  const auto data = [](const std::string& part, bool shuffle, const std::string& steps) {
    return data_set(
        "DetDataset", part + "/images\n    label_file: " + part + "/gt.txt", shuffle, "RGB",
        "      - DetLabelEncode:\n" + steps +
            R"(      - NormalizeImage: {bgr_to_rgb: False, is_hwc: True, mean: imagenet, std: imagenet}
      - ToCHWImage:
)");
  };
  return R"(
system: {mode: 0, distribute: False, amp_level: O0, seed: 7, val_while_train: True, drop_overflow_update: False}
model:
  type: det
  transform: null
  backbone: {name: det_resnet50, pretrained: True}
  neck: {name: DBFPN, out_channels: 256, bias: False, use_asf: False}
  head: {name: DBHead, k: 50, bias: False, adaptive: True}
postprocess:
  name: DBPostprocess
  output_polygon: False
  binary_thresh: 0.25
  box_thresh: 0.5
  max_candidates: 500
  expand_ratio: 1.75
metric: {name: DetMetric, main_indicator: f-score}
loss: {name: L1BalancedCELoss, eps: 1.0e-6, l1_scale: 9, bce_scale: 4, bce_replace: bceloss}
scheduler: {scheduler: polynomial_decay, lr: 0.006, num_epochs: 90, decay_rate: 0.9, warmup_epochs: 2}
optimizer: {opt: SGD, filter_bias_and_bn: false, momentum: 0.9, weight_decay: 1.0e-4}
loss_scaler: {type: dynamic, loss_scale: 512, scale_factor: 2, scale_window: 1000}
train:
  ckpt_save_dir: './out'
  dataset_sink_mode: False
)" + data("train", true, R"(      - RandomScale: {scale_range: [1.1, 2.5]}
      - IaaAugment:
          Affine: {rotate: [-8, 8]}
          Fliplr: {p: 0.25}
      - RandomCropWithBBox: {max_tries: 9, min_crop_ratio: 0.2, crop_size: [320, 320]}
      - ShrinkBinaryMap: {min_text_size: 8, shrink_ratio: 0.4}
      - BorderMap: {shrink_ratio: 0.4, thresh_min: 0.3, thresh_max: 0.7}
      - RandomColorAdjust: {brightness: 0.125, saturation: 0.5}
)") +
         R"(    output_columns: ['image', 'binary_map', 'mask', 'thresh_map', 'thresh_mask']
    num_columns_to_net: 1
  loader: {shuffle: True, batch_size: 5, drop_remainder: True, num_workers: 8}
eval:
  ckpt_load_path: 'out/best.ckpt'
  dataset_sink_mode: False
)" + data("test", false, "      - GridResize: {factor: 32}\n") +
         R"(    output_columns: ['image', 'polys', 'ignore_tags']
    num_columns_to_net: 1
  loader: {shuffle: False, batch_size: 1, drop_remainder: False, num_workers: 1}
)";
}

/// All keys of the recogniser's recipe.
std::string early_recogniser() {
  const std::string encode = R"(      - RecCTCLabelEncode:
          max_text_len: *max_text_len
          character_dict_path: *character_dict_path
          use_space_char: *use_space_char
          lower: True
)";
  const auto data = [](const std::string& type, const std::string& dir, bool shuffle,
                       const std::string& encode_step, bool padding) {
    return data_set(
        type, dir, shuffle, "BGR",
        encode_step + R"(      - RecResizeImg:
          image_shape: [32, 100]
          infer_mode: *infer_mode
          character_dict_path: *character_dict_path
)" +
            "          padding: " + (padding ? "True" : "False") + "\n" +
            R"(      - NormalizeImage: {bgr_to_rgb: True, is_hwc: True, mean: [127.0, 127.0, 127.0], std: [127.0, 127.0, 127.0]}
      - ToCHWImage:
)");
  };
  return R"(
system: {mode: 0, distribute: True, amp_level: 'O3', seed: 7, val_while_train: True, drop_overflow_update: False}
common:
  character_dict_path: &character_dict_path
  num_classes: &num_classes 37
  max_text_len: &max_text_len 20
  infer_mode: &infer_mode False
  use_space_char: &use_space_char False
  batch_size: &batch_size 6
model:
  type: rec
  transform: null
  backbone: {name: rec_resnet34, pretrained: False}
  neck: {name: RNNEncoder, hidden_size: 64}
  head:
    name: CTCHead
    weight_init: crnn_customised
    bias_init: crnn_customised
    out_channels: *num_classes
postprocess:
  name: RecCTCLabelDecode
  character_dict_path: *character_dict_path
  use_space_char: *use_space_char
metric:
  name: RecMetric
  main_indicator: acc
  character_dict_path: *character_dict_path
  ignore_space: True
  print_flag: False
loss: {name: CTCLoss, pred_seq_len: 25, max_label_len: *max_text_len, batch_size: *batch_size}
scheduler: {scheduler: warmup_cosine_decay, min_lr: 0.0, lr: 0.0004, num_epochs: 12, warmup_epochs: 1, decay_epochs: 11}
optimizer: {opt: adamw, filter_bias_and_bn: True, momentum: 0.95, weight_decay: 1.0e-4, nesterov: False}
loss_scaler: {type: static, loss_scale: 512}
train:
  ckpt_save_dir: './out'
  dataset_sink_mode: False
)" + data("LMDBDataset", "train", true, encode, false) +
         R"(    output_columns: ['image', 'text_seq']
    num_columns_to_net: 1
  loader: {shuffle: True, batch_size: *batch_size, drop_remainder: True, max_rowsize: 12, num_workers: 8}
eval:
  ckpt_load_path: './out/best.ckpt'
  dataset_sink_mode: False
)" + data("LMDBDataset", "test", false, encode, true) +
         R"(    output_columns: ['image', 'text_padded', 'text_length']
    num_columns_to_net: 1
  loader: {shuffle: False, batch_size: 4, drop_remainder: False, max_rowsize: 12, num_workers: 2}
predict:
  ckpt_load_path: ./out/best.ckpt
  vis_font_path: fonts/simfang.ttf
  dataset_sink_mode: False
)" + data("PredictDataset", "crops", false, "", false) +
         R"(    output_columns: ['img_path', 'image', 'raw_img_shape']
  loader: {shuffle: False, batch_size: 1, drop_remainder: True, max_rowsize: 12, num_workers: 8}
)";
}

TEST(EarlyMindocr, ADetectorsRecipeIsReadAsItIs) {
  const Config config = read_config(parse_yaml(early_detector(), "det.yaml"));
  EXPECT_EQ(config.model.name(), "det_resnet50-DBFPN-DBHead");
  const auto& loss = std::get<DbLossConfig>(config.loss);
  EXPECT_EQ(loss.l1_scale, 9);
  EXPECT_EQ(loss.bce_scale, 4);
  const auto& boxes = std::get<ocr::DbPostprocessOptions>(config.postprocess);
  EXPECT_EQ(boxes.box_type, ocr::DbPostprocessOptions::Box::kQuad);
  EXPECT_EQ(boxes.max_candidates, 500);
  EXPECT_EQ(boxes.expand_ratio, 1.75);
  const auto& pipeline = config.train.dataset.pipeline;
  ASSERT_EQ(pipeline.size(), 11U) << "IaaAugment is two steps";
  EXPECT_EQ(std::get<ocr::RandomRotate>(pipeline[3]).degrees, (std::array{-8, 8}));
  EXPECT_EQ(std::get<ocr::RandomHorizontalFlip>(pipeline[4]).p, 0.25);
  EXPECT_EQ(std::get<ocr::RandomCropWithBBox>(pipeline[5]).max_tries, 9);
  const auto& grid = std::get<ocr::DetResize>(config.eval.value().dataset.pipeline.at(2));
  EXPECT_EQ(grid.divisor, 32);
  EXPECT_EQ(grid.limit_type, ocr::DetResize::Limit::kNone);
}

TEST(EarlyMindocr, ARecognisersRecipeIsReadAsItIs) {
  const Config config = read_config(parse_yaml(early_recogniser(), "rec.yaml"));
  EXPECT_EQ(config.model.name(), "rec_resnet34-RNNEncoder-CTCHead");
  EXPECT_EQ(config.model.head.out_channels, 37);
  EXPECT_EQ(config.model.head.weight_init, "crnn_customised");
  EXPECT_EQ(config.train.loader.batch_size, 6);
  EXPECT_EQ(config.system.amp_level, AmpLevel::kO3);
  EXPECT_EQ(config.scheduler.num_epochs, 12);
  EXPECT_TRUE(std::get<ocr::RecResizeImg>(config.eval.value().dataset.pipeline.at(2)).padding);
  EXPECT_FALSE(std::get<ocr::RecResizeImg>(config.predict->dataset->pipeline.at(1)).padding);
}

}  // namespace
}  // namespace lockstep
