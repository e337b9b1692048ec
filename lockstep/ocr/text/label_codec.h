#pragma once
// A label's text as the class numbers that CTC trains on.

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/ocr/text/dictionary.h"

namespace lockstep::ocr {

struct EncodedText {
  std::vector<int32_t> text_seq;  ///< max_text_len entries, the rest blank.
  int32_t length = 0;             ///< Leading entries that count.
  std::string remark;             ///< What was lost on the way, for a message; empty: nothing.
};

/// Encodes `text` as MindOCR's RecCTCLabelEncode does: an empty text, and one of more than
/// `max_text_len` characters, becomes all blank; the rest is brought to lower case where the
/// dictionary says so, and characters that it lacks are dropped, which may leave none.
/// Errors: kCorrupt (not UTF-8).
EncodedText encode_text(const Dictionary& dictionary, std::string_view text, int max_text_len);

/// Length of a label for CTC: an equal neighbour needs a blank between, so it counts as one more.
int64_t ctc_length(std::string_view text);

}  // namespace lockstep::ocr
