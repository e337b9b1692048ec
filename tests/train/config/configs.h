#pragma once
// Small configurations of each type of model, and the errors of changed ones.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lockstep/error.h"
#include "lockstep/train/config/config.h"
#include "lockstep/train/config/overrides.h"
#include "lockstep/train/config/yaml_reader.h"

namespace lockstep::inline internal {

/// A classifier of pictures in a folder, of which a tenth is for evaluation.
inline constexpr auto kPictures = R"(model:
  type: cls
  backbone: {name: resnet18}
  head: {num_classes: 10}
train:
  ckpt_save_dir: out
  dataset:
    type: ImageFolderDataset
    dataset_root: root
    data_dir: photos
    held_out: 10
  loader: {batch_size: 32}
eval:
  dataset: {type: ImageFolderDataset, held_out: 10}
  loader: {batch_size: 32}
)";

/// A detector without an evaluation.
inline constexpr auto kDetector = R"(
model:
  type: det
  backbone: {name: det_resnet18, pretrained: False}
  neck: {name: DBFPN}
  head: {name: DBHead}
train:
  ckpt_save_dir: out
  dataset: &data
    type: DetDataset
    dataset_root: root
    data_dir: images
    label_file: gt.txt
    transform_pipeline:
      - DecodeImage: {img_mode: RGB}
      - DetLabelEncode:
      - RandomCropWithBBox: {p: 1.0}
      - ShrinkBinaryMap:
      - BorderMap:
      - NormalizeImage:
      - ToCHWImage:
    output_columns: [image, binary_map, mask, thresh_map, thresh_mask]
    net_input_column_index: [0]
    label_column_index: [1, 2, 3, 4]
  loader: {batch_size: 2}
)";

/// A recogniser without an evaluation.
inline constexpr auto kRecogniser = R"(
model:
  type: rec
  backbone: {name: rec_vgg7}
  neck: {name: RNNEncoder, hidden_size: 8}
  head: {name: CTCHead, out_channels: 37}
loss: {name: CTCLoss, pred_seq_len: 24, max_label_len: 23}
train:
  ckpt_save_dir: out
  dataset:
    type: LMDBDataset
    data_dir: [a, b]
    transform_pipeline:
      - DecodeImage:
      - RecCTCLabelEncode: {lower: True}
      - RecResizeImg: {image_shape: [32, 100], padding: False}
      - NormalizeImage: {bgr_to_rgb: True, mean: [127, 127, 127], std: [127, 127, 127]}
      - ToCHWImage:
    output_columns: [image, text_seq]
  loader: {batch_size: 2}
)";

/// `text` as the file t.yaml, with `-o` of each of `overrides`.
inline Config read_text(const std::string& text, const std::vector<std::string>& overrides = {}) {
  Node tree = parse_yaml(text, "t.yaml");
  apply_overrides(tree, overrides);
  return read_config(std::move(tree));
}

/// The error of the same; empty without one.
inline std::string fault_in(const std::string& text, const std::vector<std::string>& overrides) {
  try {
    read_text(text, overrides);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "";
}

}  // namespace lockstep::inline internal
