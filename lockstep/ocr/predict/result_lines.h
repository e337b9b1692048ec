#pragma once
// Lines of MindOCR's result files (det_results.txt, rec_results.txt, system_results.txt): the
// picture's file name by without_controls(), a tab, the result. Without the line feed.

#include <span>
#include <string>

#include "lockstep/ocr/postprocess/db.h"

namespace lockstep::ocr {

/// The regions for det_results.txt, system_results.txt and recognition: clamped to the picture,
/// quads clockwise from the corner of the least x + y. Invalid regions and those smaller than 3
/// pixels squared are dropped.
std::vector<Polygon> checked_regions(std::span<const DetectedRegion> found,
                                     const cv::Size& picture);

/// "[[10, 20], [50, 20], [50, 40], [10, 40]]": coordinates cut to whole pixels.
std::string corners_text(const Polygon& polygon);

/// "img_1.jpg\t[[[10, 20], [50, 20], [50, 40], [10, 40]]]": coordinates cut to whole pixels.
std::string detection_line(const std::string& file, std::span<const Polygon> regions);

/// "word_1.png\ttext".
std::string recognition_line(const std::string& file, const std::string& text);

struct ReadRegion {
  Polygon polygon;
  std::string text;  ///< UTF-8.
};

/// "img_1.jpg\t[{"transcription": "text", "points": [[10, 20], ...]}]", characters unescaped. It is
/// a line of a label file.
std::string system_line(const std::string& file, std::span<const ReadRegion> regions);

}  // namespace lockstep::ocr
