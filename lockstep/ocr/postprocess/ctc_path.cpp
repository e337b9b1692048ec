#include "lockstep/ocr/postprocess/ctc_path.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.h"
#include "lockstep/ocr/text/unicode.h"

namespace lockstep::ocr {

CtcPath ctc_path(std::span<const float> probabilities, size_t classes, int32_t blank) {
  if (classes == 0 || probabilities.size() % classes != 0) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("recognition: {} numbers are no rows of {} classes",
                            probabilities.size(), classes));
  }
  CtcPath path;
  int32_t before = -1;
  for (size_t start = 0; start < probabilities.size(); start += classes) {
    const std::span<const float> frame = probabilities.subspan(start, classes);
    const auto best = std::max_element(frame.begin(), frame.end());
    const auto label = static_cast<int32_t>(best - frame.begin());
    if (label != before && label != blank) {
      path.classes.push_back(label);
      path.confidence += *best;
    }
    before = label;
  }
  if (!path.classes.empty()) path.confidence /= static_cast<double>(path.classes.size());
  return path;
}

RecognizedText ctc_text(std::span<const float> probabilities, const Dictionary& dictionary) {
  const CtcPath path =
      ctc_path(probabilities, static_cast<size_t>(dictionary.num_classes()), dictionary.blank());
  std::string text;
  for (const int32_t one : path.classes) text += dictionary.character(one);
  return {dictionary.lower() ? to_lower(text) : text, path.confidence};
}

}  // namespace lockstep::ocr
