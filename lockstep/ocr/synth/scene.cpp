#include "lockstep/ocr/synth/scene.h"

#include <algorithm>
#include <opencv2/imgproc.hpp>

#include "lockstep/ocr/synth/backdrop.h"
#include "lockstep/ocr/synth/ink.h"
#include "lockstep/ocr/synth/style.h"
#include "lockstep/ocr/synth/words.h"

namespace lockstep::ocr {
namespace {

/// Words on a flat sheet, before they enter the scene.
struct Block {
  struct Word {
    std::string text;
    TextMask mask;
    cv::Point2d at;  // of the mask on the sheet
  };
  std::vector<Word> words;
  cv::Rect2d box;     // of all ink
  double height = 0;  // of the font
};

Block draw_block(Dice& dice, TextPen& pen, double height, int most_words) {
  Block block;
  block.height = height;
  const auto font = static_cast<size_t>(dice.whole(0, static_cast<int>(pen.fonts()) - 1));
  const double spacing = dice.chance(0.2) ? dice.real(0, 0.15) : 0;
  const double gap = dice.real(0.3, 0.8) * height;
  const int lines = dice.chance(0.25) ? 2 : 1;
  for (int line = 0; line < lines; ++line) {
    double x = 0;
    for (int words = dice.chance(0.5) ? 1 : dice.whole(1, 3); words > 0; --words) {
      if (static_cast<int>(block.words.size()) == most_words) break;
      const std::string text = draw_text(dice);
      const TextMask mask = pen.draw(text, font, height, spacing);
      const cv::Point2d at(x - mask.box.x, line * 1.35 * height - mask.base_line);
      block.words.push_back({text, mask, at});
      const cv::Rect2d ink = mask.box + at;
      block.box = block.words.size() == 1 ? ink : block.box | ink;
      x += mask.box.width + gap;
    }
  }
  return block;
}

cv::Rect2d grown(const cv::Rect2d& box, double rim) {
  return {box.x - rim, box.y - rim, box.width + 2 * rim, box.height + 2 * rim};
}

/// Paints a sign under the text, in the view of the block.
cv::Scalar paint_plate(Dice& dice, cv::Mat& image, const Block& block, const cv::Matx33d& view) {
  cv::Scalar colour = draw_colour(dice);
  const Corners rim =
      map_corners(view, corners_of(grown(block.box, dice.real(0.15, 0.5) * block.height)));
  std::vector<cv::Point> points;
  for (const cv::Point2d& corner : rim) points.emplace_back(cvRound(corner.x), cvRound(corner.y));
  cv::fillConvexPoly(image, points, colour, cv::LINE_AA);
  return colour;
}

class SceneMaker {
 public:
  SceneMaker(Dice& dice, cv::Size size, const SynthStyle& style) : dice_(dice), style_(style) {
    scene_.image = draw_backdrop(dice, size, style.clutter);
  }

  /// Tries some places; false if the block fits into none.
  bool put(const Block& block, bool legible) {
    const Corners flat_view = draw_view(dice_, block.box, block.height, style_);
    const double rim = 3 + 0.25 * block.height;
    const cv::Rect2d reach = grown(bounds_of(flat_view), rim);
    const cv::Size size = scene_.image.size();
    if (reach.width >= size.width || reach.height >= size.height) return false;
    for (int tries = 0; tries < 30; ++tries) {
      const cv::Point2d move(dice_.real(0, size.width - reach.width) - reach.x,
                             dice_.real(0, size.height - reach.height) - reach.y);
      const cv::Rect2d place = reach + move;
      const bool taken = std::any_of(taken_.begin(), taken_.end(), [&](const cv::Rect2d& other) {
        return (other & place).area() > 0;
      });
      if (taken) continue;
      taken_.push_back(place);
      Corners seen = flat_view;
      for (cv::Point2d& corner : seen) corner += move;
      paint_block(block, view_matrix(block.box, seen), place, legible);
      return true;
    }
    return false;
  }

  SynthScene finish() {
    degrade(dice_, scene_.image, style_);
    return std::move(scene_);
  }

 private:
  void paint_block(const Block& block, const cv::Matx33d& view, const cv::Rect2d& place,
                   bool legible) {
    cv::Scalar ground, spread;
    const cv::Rect around = cv::Rect(place) & cv::Rect({}, scene_.image.size());
    cv::meanStdDev(scene_.image(around), ground, spread);
    // On a ground both dark and bright no colour of ink stands out.
    const bool restless = brightness(spread) > 0.35 * style_.contrast;
    if (restless || dice_.chance(0.35)) ground = paint_plate(dice_, scene_.image, block, view);
    const InkLook look = draw_look(dice_, ground, block.height, style_);
    for (const Block::Word& word : block.words) {
      const cv::Matx33d at(1, 0, word.at.x, 0, 1, word.at.y, 0, 0, 1);
      paint(scene_.image, word.mask, view * at, look);
      const cv::Rect2d ink = look.outline ? grown(word.mask.box, 1) : word.mask.box;
      scene_.words.push_back(
          {legible ? word.text : "###", map_corners(view * at, corners_of(ink))});
    }
  }

  Dice& dice_;
  const SynthStyle& style_;
  SynthScene scene_;
  std::vector<cv::Rect2d> taken_;
};

}  // namespace

SynthScene draw_scene(Dice& dice, TextPen& pen, cv::Size size, const SynthStyle& style) {
  SceneMaker maker(dice, size, style);
  const double tallest = std::max(style.text_height + 1, std::min(size.width, size.height) / 9.0);
  int wanted = dice.whole(3, 10);
  for (int blocks = 0; blocks < 12 && wanted > 0; ++blocks) {
    const double height = dice.log_real(style.text_height, tallest);
    const Block block = draw_block(dice, pen, height, wanted);
    if (maker.put(block, true)) wanted -= static_cast<int>(block.words.size());
  }
  for (int specks = dice.chance(0.5) ? 0 : dice.whole(1, 3); specks > 0; --specks) {
    maker.put(draw_block(dice, pen, dice.real(5, 8), 1), false);
  }
  return maker.finish();
}

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
  // Rims of a few per cent, uneven like a detector's.
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
