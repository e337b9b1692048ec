#pragma once
// Reading a recogniser's frames greedily: the step of MindOCR's RecCTCLabelDecode before letters.

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::ocr {

struct CtcPath {
  std::vector<int32_t> classes;  ///< One for each letter.
  double confidence = 0;         ///< Mean probability of the frames that gave them; 0 for none.
};

/// The likeliest class of each frame (the first of equals); a frame that repeats the one before it
/// and blanks are left out. `probabilities`: frames x `classes`, row by row; a multiple of
/// `classes` long, else Error(kInvalidArgument).
CtcPath ctc_path(std::span<const float> probabilities, size_t classes, int32_t blank);

}  // namespace lockstep::ocr
