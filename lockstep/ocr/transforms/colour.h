#pragma once

#include "lockstep/base/philox.h"
#include "lockstep/ocr/sample.h"
#include "lockstep/ocr/transforms/options.h"

namespace lockstep::ocr {

/// Changes brightness, contrast, saturation and hue of an 8-bit colour image, in a random order.
/// Each factor is drawn from its range; a range of the neutral value alone (1; hue 0) is skipped.
/// The first channel counts as red, as in MindSpore, regardless of DecodeImage. Draws: three for
/// the order, then one for each that is not skipped.
void adjust_colour(const RandomColorAdjust& options, Sample& sample, Philox& draws);

/// The four steps on an image; each result is rounded to 8 bits.
void scale_brightness(cv::Mat& image, double factor);  ///< x * factor
void scale_contrast(cv::Mat& image, double factor);    ///< mean + (x - mean) * factor, mean of grey
void scale_saturation(cv::Mat& image, double factor);  ///< grey + (x - grey) * factor
void turn_hue(cv::Mat& image, double turns);           ///< by so many turns of the colour circle

}  // namespace lockstep::ocr
