#pragma once
// Small configurations of a detector, a recogniser and a classifier.

#include <string>

namespace lockstep::testing {

inline std::string det_yaml() {
  return R"(
system: {distribute: False, amp_level: O0, seed: 42, val_while_train: False, drop_overflow_update: False}
model:
  type: det
  backbone: {name: det_resnet18, pretrained: False}
  neck: {name: DBFPN, out_channels: 256, bias: False}
  head: {name: DBHead, k: 50, bias: False, adaptive: True}
postprocess: {name: DBPostprocess, box_type: quad, binary_thresh: 0.3, box_thresh: 0.6, max_candidates: 1000, expand_ratio: 1.5}
metric: {name: DetMetric, main_indicator: f-score}
loss: {name: DBLoss, eps: 1.0e-6, l1_scale: 10, bce_scale: 5, bce_replace: bceloss}
scheduler: {scheduler: constant, lr: 0.01, num_epochs: 1, warmup_epochs: 0}
optimizer: {opt: sgd, momentum: 0.9}
train:
  ckpt_save_dir: ./det_out
  dataset_sink_mode: False
  dataset:
    type: DetDataset
    data_dir: images
    label_file: gt.txt
    transform_pipeline:
      - DecodeImage: {img_mode: RGB}
      - DetLabelEncode:
      - RandomCropWithBBox: {crop_size: [64, 64]}
      - ShrinkBinaryMap:
      - BorderMap:
      - NormalizeImage: {bgr_to_rgb: False, is_hwc: True, mean: imagenet, std: imagenet}
      - ToCHWImage:
    output_columns: [image, binary_map, mask, thresh_map, thresh_mask]
    net_input_column_index: [0]
    label_column_index: [1, 2, 3, 4]
  loader: {shuffle: True, batch_size: 2, drop_remainder: True, num_workers: 1}
eval:
  ckpt_load_path:
  dataset_sink_mode: False
  dataset:
    type: DetDataset
    data_dir: images
    label_file: gt.txt
    transform_pipeline:
      - DecodeImage: {img_mode: RGB}
      - DetLabelEncode:
      - DetResize: {target_size: [64, 96], keep_ratio: False}
      - NormalizeImage: {bgr_to_rgb: False, is_hwc: True, mean: imagenet, std: imagenet}
      - ToCHWImage:
    output_columns: [image, polys, ignore_tags, shape_list]
    net_input_column_index: [0]
    label_column_index: [1, 2]
  loader: {shuffle: False, batch_size: 1, drop_remainder: False, num_workers: 1}
)";
}

inline std::string rec_yaml() {
  return R"(
system: {distribute: False, amp_level: O0, seed: 42, val_while_train: False, drop_overflow_update: False}
model:
  type: rec
  backbone: {name: rec_vgg7, pretrained: False}
  neck: {name: RNNEncoder, hidden_size: 32}
  head: {name: CTCHead, out_channels: 37, weight_init: crnn_customised, bias_init: crnn_customised}
postprocess: {name: RecCTCLabelDecode, character_dict_path:, use_space_char: False}
metric: {name: RecMetric, main_indicator: acc}
loss: {name: CTCLoss, pred_seq_len: 24, max_label_len: 23, batch_size: 2}
scheduler: {scheduler: constant, lr: 0.01, num_epochs: 1, warmup_epochs: 0}
optimizer: {opt: adamw}
train:
  ckpt_save_dir: ./rec_out
  dataset_sink_mode: False
  dataset:
    type: RecDataset
    data_dir: words
    label_file: gt.txt
    transform_pipeline:
      - DecodeImage: {img_mode: BGR}
      - RecCTCLabelEncode: {max_text_len: 23}
      - RecResizeImg: {image_shape: [32, 100], infer_mode: False, padding: False}
      - NormalizeImage: {bgr_to_rgb: True, is_hwc: True, mean: [127.0, 127.0, 127.0], std: [127.0, 127.0, 127.0]}
      - ToCHWImage:
    output_columns: [image, text_seq]
    net_input_column_index: [0]
    label_column_index: [1]
  loader: {shuffle: True, batch_size: 2, drop_remainder: True, num_workers: 1}
predict:
  ckpt_load_path: ./rec_out/best.ckpt
  output_save_dir: ./rec_results
  dataset:
    type: PredictDataset
    data_dir: crops
    transform_pipeline:
      - DecodeImage: {img_mode: BGR}
      - RecResizeNormForInfer: {target_height: 32, target_width: 100, keep_ratio: False, padding: False}
      - ToCHWImage:
    output_columns: [image, img_path]
    net_input_column_index: [0]
  loader: {shuffle: False, batch_size: 4, drop_remainder: False, num_workers: 1}
)";
}

/// Its data do not exist; they are not needed.
inline std::string cls_yaml() {
  return R"(
system: {distribute: False, amp_level: O0, seed: 42, val_while_train: False}
model:
  type: cls
  backbone: {name: resnet18, stem: cifar, pretrained: False}
  head: {name: ClsHead, num_classes: 3}
postprocess: {name: ClsPostprocess, label_list: [circle, ring, square]}
metric: {name: ClsMetric, main_indicator: acc}
loss: {name: CrossEntropySmooth}
scheduler: {scheduler: constant, lr: 0.01, num_epochs: 1, warmup_epochs: 0}
optimizer: {opt: sgd}
train:
  ckpt_save_dir: ./cls_out
  dataset: {type: Cifar10Dataset, data_dir: nowhere}
  loader: {batch_size: 2}
eval:
  dataset:
    type: Cifar10Dataset
    transform_pipeline:
      - NormalizeImage: {mean: [127.5, 127.5, 127.5], std: [127.5, 127.5, 127.5]}
      - ToCHWImage:
  loader: {batch_size: 2, num_workers: 1}
)";
}

/// cls_yaml() with the network of mean_colour.cpp.
inline std::string own_network_yaml() {
  std::string text = cls_yaml();
  const std::string parts =
      "  backbone: {name: resnet18, stem: cifar, pretrained: False}\n"
      "  head: {name: ClsHead, num_classes: 3}\n";
  return text.replace(text.find(parts), parts.size(),
                      "  network: {name: mean_colour}\n  head: {num_classes: 3}\n");
}

/// The same with its data set, which makes batches: `predict` has the steps to an input.
inline std::string own_data_yaml() {
  const std::string text = own_network_yaml();
  return text.substr(0, text.find("\ntrain:")) + R"(
train:
  ckpt_save_dir: ./own_out
  dataset: {type: black_pictures}
  loader: {batch_size: 2}
eval:
  dataset: {type: black_pictures}
  loader: {batch_size: 2, num_workers: 1}
predict:
  dataset:
    type: PredictDataset
    transform_pipeline:
      - Resize: {size: [8, 8]}
      - NormalizeImage: {mean: [127.5, 127.5, 127.5], std: [127.5, 127.5, 127.5]}
      - ToCHWImage:
)";
}

}  // namespace lockstep::testing
