#pragma once
// Arguments of MindOCR's post-processing, under its names and with its defaults.

#include <cstdint>
#include <string>

namespace lockstep::ocr {

struct DbPostprocessOptions {
  enum class Box : uint8_t { kQuad, kPoly };
  double binary_thresh = 0.3;
  double box_thresh = 0.7;
  int max_candidates = 1000;
  double expand_ratio = 1.5;
  Box box_type = Box::kQuad;
};

}  // namespace lockstep::ocr
