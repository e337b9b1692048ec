#pragma once
// MindOCR's label files: a line an image, "IMAGE<TAB>LABEL".

#include <string>
#include <string_view>

namespace lockstep::ocr {

struct LabelLine {
  std::string image{};  ///< Relative to the data folder.
  std::string label{};  ///< Detection: a JSON list. Recognition: the text.
};

/// One line, surrounding white space cut off: at its only tab, or, without a tab, at its only
/// blank. `where` ("FILE:LINE") begins every error: kCorrupt (no separator, more than one, nothing
/// beside it, not UTF-8, over 16 MiB).
LabelLine split_label_line(std::string_view line, const std::string& where);

}  // namespace lockstep::ocr
