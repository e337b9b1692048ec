#pragma once
// One image with its text on the way from a file to a network.

#include <array>
#include <cstdint>
#include <opencv2/core.hpp>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::ocr {

using Polygon = std::vector<cv::Point2f>;  ///< Corners in order, at least 3; x right, y down.

/// A piece of text in an image. `ignored`: illegible, counts neither for nor against.
struct TextRegion {
  Polygon polygon;
  std::string text;  ///< UTF-8.
  bool ignored = false;
};

/// How a resized image came to be: MindOCR's shape_list.
struct ResizeRecord {
  float src_height = 0;
  float src_width = 0;
  float scale_height = 1;  ///< Resized over source.
  float scale_width = 1;
};

/// Legend: H rows, W columns. A transform reads and changes what it is about and leaves the rest.
struct Sample {
  std::string source;            ///< For messages: an image's path, or "LMDB-FOLDER:KEY".
  std::vector<uint8_t> encoded;  ///< The image's file, when it does not stand at `source`.
  int min_side = 1;              ///< A smaller image is a bad sample.
  /// H x W, 8-bit (1 or 3 channels), after NormalizeImage 32-bit float; after ToCHWImage a
  /// continuous array of three dimensions, C x H x W.
  cv::Mat image;
  bool planar = false;  ///< After ToCHWImage.
  cv::Mat original;     ///< With DecodeImage's keep_ori.
  cv::Size raw_size;    ///< As decoded.
  std::optional<ResizeRecord> resize;

  std::string label;         ///< Recognition: the text. Detection: what DetLabelEncode reads.
  std::string label_source;  ///< For messages: "LABEL-FILE:LINE", or empty.
  std::vector<std::string> remarks;  ///< What transforms had to leave out, a line each.

  // Detection
  std::vector<TextRegion> regions;
  cv::Size actual_size;  ///< What RandomCropWithBBox left of the image; the rest is padding.
  cv::Mat binary_map, mask, thresh_map, thresh_mask;  ///< H x W, 32-bit float.

  // Recognition
  std::vector<int32_t> text_seq;  ///< max_text_len entries, the rest blank.
  int32_t length = 0;             ///< Characters in text_seq that count.
  float valid_ratio = 1;          ///< Part of the image's columns that is not padding.
};

}  // namespace lockstep::ocr
