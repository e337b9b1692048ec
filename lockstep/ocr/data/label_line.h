#pragma once
// MindOCR's label files: a line an image, "IMAGE<TAB>LABEL".

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::ocr {

struct LabelLine {
  std::string image{};  ///< Relative to the data folder.
  std::string label{};  ///< Detection: a JSON list. Recognition: the text.
  int64_t number = 0;
  std::string fault{};  ///< "FILE:LINE: why" of a line that cannot be used; it has nothing else.
};

/// One line, surrounding white space cut off: at its only tab, or, without a tab, at its only
/// blank. `where` ("FILE:LINE") begins every error: kCorrupt (no separator, more than one, nothing
/// beside it, not UTF-8, over 16 MiB).
LabelLine split_label_line(std::string_view line, const std::string& where);

/// All lines of a file, those with a fault too, empty ones left out; a byte order mark is passed
/// over. `file` names it.
std::vector<LabelLine> split_label_file(std::string_view bytes, const std::string& file);

}  // namespace lockstep::ocr
