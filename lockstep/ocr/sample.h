#pragma once
// One image with its text on its way from a file to a network.

#include <cstdint>
#include <opencv2/core.hpp>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::ocr {

using Polygon = std::vector<cv::Point2f>;  ///< Corners in order, at least 3; x right, y down.

/// A piece of text in an image. `ignored`: illegible; it counts neither as found nor as missed.
struct TextRegion {
  Polygon polygon;
  std::string text;  ///< UTF-8.
  bool ignored = false;
};

/// The record of a resize: MindOCR's shape_list.
struct ResizeRecord {
  float src_height = 0;
  float src_width = 0;
  float scale_height = 1;  ///< Resized over source.
  float scale_width = 1;
};

/// Legend: H rows, W columns. A transform changes only its own fields.
struct Sample {
  std::string source;            ///< For messages: an image's path, or "LMDB-FOLDER:KEY".
  std::vector<uint8_t> encoded;  ///< The image's file, if it is not at `source`.
  int min_side = 1;              ///< A smaller image is a bad sample.
  /// H x W, 8-bit (1 or 3 channels). After NormalizeImage it is 32-bit float, unless that is left
  /// out. After ToCHWImage it is a continuous array of three dimensions, C x H x W.
  cv::Mat image;
  bool planar = false;  ///< After ToCHWImage.
  cv::Mat original;     ///< With DecodeImage's keep_ori.
  cv::Size raw_size;    ///< As decoded.
  std::optional<ResizeRecord> resize;

  std::string label;         ///< Recognition: the text. Detection: the input of DetLabelEncode.
  std::string label_source;  ///< For messages: "LABEL-FILE:LINE", or empty.
  std::vector<std::string> remarks;  ///< Parts that transforms had to omit, one per line.

  // Detection
  std::vector<TextRegion> regions;
  cv::Size actual_size;  ///< The image within RandomCropWithBBox's canvas; the rest is padding.
  cv::Mat binary_map, mask, thresh_map, thresh_mask;  ///< H x W, 32-bit float.

  // Recognition
  std::vector<int32_t> text_seq;  ///< max_text_len entries, the rest blank.
  int32_t length = 0;             ///< Used entries of text_seq.
  float valid_ratio = 1;          ///< Share of the image's columns without padding.
};

}  // namespace lockstep::ocr
