#pragma once
// Colours of 8-bit RGB pictures, in Pillow's arithmetic, as torchvision has it for classifiers. The
// steps of ocr/transforms/colour.h round otherwise, as MindOCR does by OpenCV: they share no code.

#include <cstdint>
#include <opencv2/core.hpp>

#include "lockstep/data/steps.h"

namespace lockstep::inline internal {

// Each returns a new picture. A factor of 1 changes nothing, 0 takes the property away: a black, a
// grey, a grey-scale picture. Results are cut to 0 .. 255.

cv::Mat with_brightness(const cv::Mat& picture, double factor);
/// Around the mean of the grey-scale picture.
cv::Mat with_contrast(const cv::Mat& picture, double factor);
cv::Mat with_saturation(const cv::Mat& picture, double factor);
/// `turns` of the colour circle, in [-0.5, 0.5], in steps of 1/255.
cv::Mat with_hue_shift(const cv::Mat& picture, double turns);

/// From `none` at factor 0 to `full` at factor 1, and beyond.
uint8_t blended(int none, int full, float factor);

cv::Mat jittered(const ColorJitter& jitter, RandomNumbers& random, const cv::Mat& picture);

}  // namespace lockstep::inline internal
