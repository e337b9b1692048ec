#pragma once
// A word as a detector would cut it out.

#include <opencv2/core.hpp>
#include <string>

#include "lockstep/ocr/synth/dice.h"
#include "lockstep/ocr/synth/style.h"
#include "lockstep/ocr/synth/text_mask.h"

namespace lockstep::ocr {

struct SynthWord {
  cv::Mat image;  ///< 8-bit BGR, 32 to 64 rows.
  std::string text;
};

/// The word is turned by a third of what words of scenes are: a crop has been straightened.
SynthWord draw_word(Dice& dice, TextPen& pen, const SynthStyle& style);

}  // namespace lockstep::ocr
