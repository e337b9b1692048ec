#pragma once
// Transforms of images of words.

#include "lockstep/ocr/sample.h"
#include "lockstep/ocr/transforms/options.h"

namespace lockstep::ocr {

/// Resizes to image_shape. With padding the width follows the image's proportions up to that of
/// image_shape, min(ceil(H w / h), W). The image is at the left of a black canvas. Sets
/// `valid_ratio`.
void rec_resize(const RecResizeImg& options, Sample& sample);

/// rec_resize() and normalize_to_planar() with the same numbers, in less than half the time.
void rec_resize_to_planar(const RecResizeImg& options, const NormalizeImage& norm, Sample& sample);

/// rec_resize(), and normalize_image() of a `norm` that is left out, in less time.
void rec_resize_in_order(const RecResizeImg& options, const NormalizeImage& norm, Sample& sample);

/// Resizes to target_height, and to target_width or, with keep_ratio, to the image's proportions
/// below it. Normalizes (x / divisor - mean) / std in float32. The black canvas is added before it,
/// so that padding becomes -mean / std; with norm_before_pad, after it. Sets `resize`.
void rec_resize_normalize(const RecResizeNormForInfer& options, Sample& sample);

/// Its arithmetic: (x / d - mean) / std = (x - d mean) / (d std), bit for bit if d is 1.
NormalizeImage normalization_of(const RecResizeNormForInfer& options);

/// Turns an image by a quarter if height / width is above the threshold.
void rotate_if_vertical(const Rotate90IfVertical& options, Sample& sample);

/// min(limit, ceil(height * w / h)): the width of an image of `size` at a height.
int proportional_width(cv::Size size, int height, int limit);

}  // namespace lockstep::ocr
