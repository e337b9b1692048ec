#pragma once
// A registered transform as a step of a pipeline of OpenCV's matrices.

#include <opencv2/core.hpp>

#include "lockstep/base/philox.h"
#include "lockstep/data/own_transform.h"

namespace lockstep::inline internal {

/// What the step makes of `picture`, 8-bit RGB, which stays as it is. Errors: those of
/// apply_own_transform(); kCorrupt for a picture that is too large.
cv::Mat apply_own_step(const OwnTransform& step, const cv::Mat& picture, Philox& random);

}  // namespace lockstep::inline internal
