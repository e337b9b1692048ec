#pragma once
// Resizing as Pillow's Image.resize(size, BILINEAR).

#include <opencv2/core.hpp>

namespace lockstep::inline internal {

/// `picture` (8-bit, three channels) in another size, also for a part of a larger matrix.
///
/// Each output pixel is the mean of the input below a triangle that is as wide as two output
/// pixels, and at least as two input pixels. So a smaller picture has no aliasing. First the rows,
/// then the columns, each rounded to 8 bits; weights are fixed-point numbers of 22 bits. An axis
/// that keeps its size is left alone. With AVX2 several pixels are made at once, with the same
/// bits. Source: Pillow's documentation, "Filters"; the rounding was measured from its results.
cv::Mat resample(const cv::Mat& picture, cv::Size size);
/// The same of a part of `picture`, whose corners may lie within pixels, as with Pillow's `box`.
cv::Mat resample(const cv::Mat& picture, cv::Size size, const cv::Rect2d& box);

}  // namespace lockstep::inline internal
