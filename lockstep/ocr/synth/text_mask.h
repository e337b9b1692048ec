#pragma once

#include <memory>
#include <opencv2/core.hpp>
#include <string>
#include <vector>

#include "lockstep/ocr/synth/fonts.h"

namespace lockstep::ocr {

/// A drawn text: the coverage of each pixel by its ink.
struct TextMask {
  cv::Mat alpha;   ///< H x W, 8-bit; a rim of 2 pixels is empty.
  cv::Rect2d box;  ///< Of the ink, by edges: pixel (row, column) is [column, column + 1) wide.
  double base_line = 0;  ///< Rows from the top to the base line.
};

/// Draws text by FreeType, without hints, so that the outline is the designer's at any size. Not
/// thread-safe: each thread has its own. Faces are opened once and kept.
class TextPen {
 public:
  explicit TextPen(std::vector<FontFile> fonts);
  ~TextPen();
  TextPen(const TextPen&) = delete;
  TextPen& operator=(const TextPen&) = delete;

  size_t fonts() const;

  /// `text`: ASCII. `pixels`: size of the em. `spacing`: added between letters, in ems.
  /// Errors: kIo naming a font file that cannot be read; kInvalidArgument for a text without ink.
  TextMask draw(const std::string& text, size_t font, double pixels, double spacing = 0);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::ocr
