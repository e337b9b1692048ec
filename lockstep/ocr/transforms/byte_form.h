#pragma once
// Training data as bytes: the arithmetic of NormalizeImage is left to a device.

#include <opencv2/core.hpp>
#include <optional>
#include <vector>

#include "lockstep/ocr/transforms/options.h"

namespace lockstep::ocr {

/// A list of transforms whose images remain bytes.
struct ByteForm {
  /// Images are H x W, 8-bit, of three channels in the network's order.
  std::vector<Transform> transforms;
  cv::Mat values;  ///< (3, 256) float: of each channel, the number that each byte stands for.
};

/// The form of a list in which each number of an image depends on one byte alone; else none. Looked
/// up in `values`, the bytes are the list's own numbers, bit for bit.
///
/// Such a list decodes to 8-bit colours and normalises once. Behind that only ToCHWImage and the
/// encoding of labels may follow. Padding must come before it. A zero that RecResizeNormForInfer
/// adds behind it (norm_before_pad) is the number of no byte, in general.
std::optional<ByteForm> as_bytes(const std::vector<Transform>& transforms);

}  // namespace lockstep::ocr
