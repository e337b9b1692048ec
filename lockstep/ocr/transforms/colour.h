#pragma once

#include "lockstep/base/philox.h"
#include "lockstep/ocr/sample.h"
#include "lockstep/ocr/transforms/options.h"

namespace lockstep::ocr {

/// Brightness, contrast, saturation and hue of an 8-bit colour image, in an order that is drawn,
/// each by a factor drawn from its range and left out where that is the neutral value alone (1; hue
/// 0). The first channel counts as red, as in MindSpore, whatever DecodeImage made.
/// Draws: three for the order, then one for each that is not left out.
void adjust_colour(const RandomColorAdjust& options, Sample& sample, Philox& draws);

/// The four steps on an image; each result is rounded to 8 bits.
void scale_brightness(cv::Mat& image, double factor);  ///< x * factor
void scale_contrast(cv::Mat& image, double factor);    ///< mean + (x - mean) * factor, mean of grey
void scale_saturation(cv::Mat& image, double factor);  ///< grey + (x - grey) * factor
void turn_hue(cv::Mat& image, double turns);           ///< by so many turns of the colour circle

}  // namespace lockstep::ocr
