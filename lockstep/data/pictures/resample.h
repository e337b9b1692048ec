#pragma once
// Resizing as Pillow's Image.resize(size, BILINEAR).

#include <opencv2/core.hpp>

namespace lockstep {

/// `picture` (8-bit, three channels) in another size, also for a part of a larger matrix.
///
/// Each output pixel is the mean of the input below a triangle that is as wide as two output
/// pixels, and at least as two input pixels. So a smaller picture has no aliasing. First the rows,
/// then the columns, each rounded to 8 bits; weights are fixed-point numbers of 22 bits. An axis
/// that keeps its size is left alone. Cost: about 2 ns per byte and axis.
/// Source: Pillow's documentation, "Filters"; the rounding was measured from its results.
cv::Mat resample(const cv::Mat& picture, cv::Size size);

}  // namespace lockstep
