#pragma once
// Draws detected and recognised text onto pictures.

#include <filesystem>
#include <span>
#include <string>

#include "lockstep/ocr/sample.h"

namespace lockstep::ocr {

struct Annotation {
  Polygon polygon;   ///< Pixels of the picture.
  std::string text;  ///< UTF-8; empty: the outline alone.
};

/// A copy of `image` (8-bit; gray, or three channels in OpenCV's order) with red outlines. Above
/// each is its text in green on a dark ground, no wider than the outline if that is readable. Pango
/// chooses among the installed fonts, so Chinese needs a font with its characters; `family` is
/// preferred. Errors: kInvalidArgument for other types of image.
cv::Mat annotate(const cv::Mat& image, std::span<const Annotation> annotations,
                 const std::string& family = "Sans");

/// Registers a font file in this process. Returns the name of its family. Errors: kNotFound,
/// kCorrupt (no font).
std::string add_font(const std::filesystem::path& file);

}  // namespace lockstep::ocr
