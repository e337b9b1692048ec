#pragma once
// What a camera does to a picture.

#include <cstdint>
#include <opencv2/core.hpp>
#include <vector>

#include "lockstep/ocr/synth/dice.h"
#include "lockstep/ocr/synth/style.h"

namespace lockstep::ocr {

/// Blurs by up to `style.blur` and adds noise of up to `style.noise`.
void degrade(Dice& dice, cv::Mat& image, const SynthStyle& style);

/// JPEG of a quality between `style.jpeg` and 95.
std::vector<uint8_t> encode_jpeg(Dice& dice, const cv::Mat& image, const SynthStyle& style);

}  // namespace lockstep::ocr
