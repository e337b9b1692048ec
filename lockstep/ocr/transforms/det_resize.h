#pragma once

#include "lockstep/ocr/sample.h"
#include "lockstep/ocr/transforms/options.h"

namespace lockstep::ocr {

/// Size of an image of `size` after DetResize, before any padding.
///
/// limit kMin: enlarged until the short side is limit_side_len. kMax: reduced until the long side
/// is. kNone with a target and keep_ratio: the largest size within the target. In these cases each
/// side is cut to a whole number, then rounded to a multiple of 32 and limited to the target. As in
/// MindOCR it is halves to the even multiple, at least 32, not the divisor. With `exact` it is only
/// rounded. kNone otherwise: the target, or the image's own size. Finally, with force_divisable and
/// without padding, each side is raised to a multiple of the divisor.
cv::Size resized_size(const DetResize& options, cv::Size size);

/// The effective target: with force_divisable rounded to multiples of the divisor.
std::optional<cv::Size> effective_target(const DetResize& options);

/// Resizes the image and, with `padding` and a target, puts it on a black canvas of the target's
/// size. `training`: polygons are scaled along; else they stay in the source's coordinates.
/// `exact`: both scales are the one that fits the target, before the rounding of sides. Sets
/// `resize`; a second DetResize multiplies both its scales by the vertical one, as in MindOCR.
/// Error(kInvalidArgument): more than kMaxImagePixels.
void det_resize(const DetResize& options, bool training, Sample& sample);

/// OpenCV's number for an interpolation.
int opencv_flag(Interpolation interpolation);

}  // namespace lockstep::ocr
