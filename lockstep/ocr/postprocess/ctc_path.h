#pragma once
// Reading a recogniser's frames greedily: MindOCR's RecCTCLabelDecode.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/ocr/text/dictionary.h"

namespace lockstep::ocr {

struct CtcPath {
  std::vector<int32_t> classes;  ///< One for each letter.
  double confidence = 0;         ///< Mean probability of the frames that gave them; 0 for none.
};

/// The likeliest class of each frame (the first of equals); a frame that repeats the one before it
/// and blanks are left out. `probabilities`: frames x `classes`, row by row; a multiple of
/// `classes` long, else Error(kInvalidArgument).
CtcPath ctc_path(std::span<const float> probabilities, size_t classes, int32_t blank);

struct RecognizedText {
  std::string text;
  double confidence = 0;
};

/// The same as letters: in lower case where the dictionary says so.
RecognizedText ctc_text(std::span<const float> probabilities, const Dictionary& dictionary);

}  // namespace lockstep::ocr
