#pragma once
// A registered transform as a step of a pipeline.

#include <opencv2/core.hpp>
#include <stdexcept>

#include "lockstep/base/philox.h"
#include "lockstep/data/pictures/steps.h"

namespace lockstep {

/// A registered transform has a fault, whatever the picture. No sample replaces another: training
/// ends, or the evaluation.
struct TransformFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What the step makes of `picture`, 8-bit RGB, which stays as it is. Errors: kCorrupt for an
/// Error of the transform, with the transform's name in front; TransformFailed for any other
/// exception, and for a transform that moved its picture away.
cv::Mat apply_own_step(const OwnPictureStep& step, const cv::Mat& picture, Philox& random);

}  // namespace lockstep
