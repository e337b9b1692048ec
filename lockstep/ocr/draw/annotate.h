#pragma once
// Pictures that show what was found and read.

#include <filesystem>
#include <span>
#include <string>

#include "lockstep/ocr/sample.h"

namespace lockstep::ocr {

struct Annotation {
  Polygon polygon;   ///< Pixels of the picture.
  std::string text;  ///< UTF-8; empty: the outline alone.
};

/// A copy of `image` (8-bit; gray, or three channels in OpenCV's order) with red outlines and,
/// above each, its text in green on a dark ground, no wider than the outline where that is
/// readable. Letters come from whichever installed font has them (Pango chooses), so Chinese shows
/// where such a font is; `family` is asked first. Errors: kInvalidArgument for other types of
/// image.
cv::Mat annotate(const cv::Mat& image, std::span<const Annotation> annotations,
                 const std::string& family = "Sans");

/// Makes a font file's letters known to this process. Returns the name of its family.
/// Errors: kNotFound, kCorrupt (no font).
std::string add_font(const std::filesystem::path& file);

}  // namespace lockstep::ocr
