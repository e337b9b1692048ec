#pragma once
// A registered transform as a step of a pipeline of OpenCV's matrices, and a built-in step as a
// transform that a registered one may call.

#include <opencv2/core.hpp>

#include "lockstep/data/own_transform.h"
#include "lockstep/data/steps.h"

namespace lockstep::inline internal {

/// What the step makes of `picture`, 8-bit RGB, which stays as it is. Errors: those of
/// apply_own_transform(); kCorrupt for a picture that is too large.
cv::Mat apply_own_step(const OwnTransform& step, const cv::Mat& picture, RandomNumbers& random);

/// A step on bytes, so neither Normalize nor RandomErasing, as a function of a picture. Of the same
/// numbers it makes the same bytes as in a PicturePipeline. Its cost is a copy of the result above
/// that of the step. Its errors: those of PicturePipeline::apply().
PictureTransform step_as_transform(PictureStep step);

}  // namespace lockstep::inline internal
