#pragma once
// Greedy decoding of a recogniser's frames: MindOCR's RecCTCLabelDecode.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/ocr/text/dictionary.h"

namespace lockstep::ocr {

struct CtcPath {
  std::vector<int32_t> classes;  ///< One per character.
  double confidence = 0;         ///< Mean probability of their frames; 0 for none.
};

/// The likeliest class of each frame (the first of equals), without blanks and without frames that
/// repeat the previous one. `probabilities`: frames x `classes`, row by row; a multiple of
/// `classes` long, else Error(kInvalidArgument).
CtcPath ctc_path(std::span<const float> probabilities, size_t classes, int32_t blank);

struct RecognizedText {
  std::string text;
  double confidence = 0;
};

/// The same as text; in lower case if the dictionary is.
RecognizedText ctc_text(std::span<const float> probabilities, const Dictionary& dictionary);

}  // namespace lockstep::ocr
