#include "lockstep/ocr/synth/word_crop.h"

#include <algorithm>
#include <opencv2/imgproc.hpp>

#include "lockstep/ocr/synth/backdrop.h"
#include "lockstep/ocr/synth/degrade.h"
#include "lockstep/ocr/synth/ink.h"
#include "lockstep/ocr/synth/words.h"

namespace lockstep::ocr {

SynthWord draw_word(Dice& dice, TextPen& pen, const SynthStyle& style) {
  SynthWord word;
  word.text = draw_text(dice);
  const auto font = static_cast<size_t>(dice.whole(0, static_cast<int>(pen.fonts()) - 1));
  const double spacing = dice.chance(0.3) ? dice.real(-0.02, 0.15) : 0;
  const TextMask mask = pen.draw(word.text, font, 48, spacing);
  SynthStyle view_style = style;
  view_style.tilt /= 3;
  const Corners seen = draw_view(dice, mask.box, mask.box.height, view_style);
  const cv::Rect2d ink = bounds_of(seen);
  // Rims of a few per cent, uneven as a detector's are.
  const double left = dice.real(0.02, 0.25) * ink.height,
               right = dice.real(0.02, 0.25) * ink.height;
  const double above = dice.real(0.02, 0.2) * ink.height, below = dice.real(0.02, 0.2) * ink.height;
  const int rows = dice.whole(32, 64);
  const double scale = rows / (ink.height + above + below);
  const int columns = std::max(cvRound((ink.width + left + right) * scale), 8);
  Corners placed = seen;
  for (cv::Point2d& corner : placed) {
    corner = scale * (corner - cv::Point2d(ink.x - left, ink.y - above));
  }
  word.image = draw_backdrop(dice, {columns, rows}, dice.chance(0.5) ? 0 : style.clutter / 5);
  const cv::Matx33d view = view_matrix(mask.box, placed);
  paint(word.image, mask, view, draw_look(dice, cv::mean(word.image), rows, style));
  degrade(dice, word.image, style);
  return word;
}

}  // namespace lockstep::ocr
