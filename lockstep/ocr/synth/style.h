#pragma once
// The effects of a camera on a picture.

#include <cstdint>
#include <opencv2/core.hpp>
#include <string_view>
#include <vector>

#include "lockstep/ocr/synth/dice.h"

namespace lockstep::ocr {

// The difficulty of the generated pictures.

/// Bounds of the random draws of a picture; each draw is uniform between the mild end and the
/// bound.
struct SynthStyle {
  double tilt = 12;           ///< Degrees either way.
  double perspective = 0.12;  ///< A corner's shift, in heights of the text.
  double contrast = 75;       ///< Least difference of brightness, text to ground, of 255.
  double blur = 0.9;          ///< Sigma in pixels.
  double noise = 9;           ///< Sigma, of 255.
  int jpeg = 65;              ///< Lowest quality; the best is 95.
  double effects = 0.25;      ///< Probability of a shadow or an outline of a text.
  int clutter = 14;           ///< Maximum number of shapes on a scene's ground.
  double text_height = 16;    ///< Smallest legible text of a scene, font size in pixels.
};

/// "easy", "normal", "hard". Errors: kInvalidArgument naming these.
SynthStyle synth_style(std::string_view difficulty);

/// Blurs by up to `style.blur` and adds noise of up to `style.noise`.
void degrade(Dice& dice, cv::Mat& image, const SynthStyle& style);

/// JPEG of a quality between `style.jpeg` and 95.
std::vector<uint8_t> encode_jpeg(Dice& dice, const cv::Mat& image, const SynthStyle& style);

}  // namespace lockstep::ocr
