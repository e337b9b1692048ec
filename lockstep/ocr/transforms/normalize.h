#pragma once
// Converts 8-bit pixels to the network's numbers.

#include "lockstep/ocr/sample.h"
#include "lockstep/ocr/transforms/options.h"

namespace lockstep::ocr {

/// (x - mean) / std per channel in float32, for values 0 .. 255. swap_channels first exchanges the
/// first and the last of three channels. A grey image uses the first mean and std. With left_out
/// the channels are exchanged, and pixels keep their type.
void normalize_image(const NormalizeImage& options, Sample& sample);

/// `image` becomes a continuous C x H x W array of three dimensions, `planar` true.
void to_planar(Sample& sample);

/// Both at once, with the same numbers, in a third of the time.
void normalize_to_planar(const NormalizeImage& options, Sample& sample);

/// The same for separate channels, 1 or 3 of one size, 8-bit or float.
cv::Mat normalized_planes(const NormalizeImage& options, const std::vector<cv::Mat>& planes);

}  // namespace lockstep::ocr
