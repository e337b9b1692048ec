#pragma once
// A scene: words on a textured ground, each with its exact outline.

#include <opencv2/core.hpp>
#include <string>
#include <vector>

#include "lockstep/ocr/synth/dice.h"
#include "lockstep/ocr/synth/ink.h"
#include "lockstep/ocr/synth/style.h"
#include "lockstep/ocr/synth/text_mask.h"

namespace lockstep::ocr {

struct SceneWord {
  std::string text;  ///< "###" if it is too small to read.
  Corners corners;   ///< Of its ink, edges of pixels; clockwise from the upper left.
};

struct SynthScene {
  cv::Mat image;  ///< 8-bit BGR.
  std::vector<SceneWord> words;
};

/// 3 to 10 legible words, alone or in blocks of up to two lines, and up to three illegible ones.
/// Words are whole inside the picture and do not touch. A picture that is too small for them holds
/// fewer.
SynthScene draw_scene(Dice& dice, TextPen& pen, cv::Size size, const SynthStyle& style);

// A word as cut out by a detector.

struct SynthWord {
  cv::Mat image;  ///< 8-bit BGR, 32 to 64 rows.
  std::string text;
};

/// The tilt is a third of that in scenes: a crop is already straightened.
SynthWord draw_word(Dice& dice, TextPen& pen, const SynthStyle& style);

}  // namespace lockstep::ocr
