#include "lockstep/ocr/text/label_codec.h"

#include <fmt/format.h>

#include "lockstep/error.h"
#include "lockstep/ocr/text/unicode.h"

namespace lockstep::ocr {
namespace {

EncodedText all_blank(const Dictionary& dictionary, int max_text_len, std::string remark) {
  return {std::vector<int32_t>(static_cast<size_t>(max_text_len), dictionary.blank()), 0,
          std::move(remark)};
}

}  // namespace

EncodedText encode_text(const Dictionary& dictionary, std::string_view text, int max_text_len) {
  if (!is_utf8(text)) throw Error(ErrorCode::kCorrupt, "the text is not UTF-8");
  if (text.empty()) return all_blank(dictionary, max_text_len, "the text is empty");
  const int64_t count = count_characters(text);
  if (count > max_text_len) {
    return all_blank(dictionary, max_text_len,
                     fmt::format("'{}' has {} characters, more than max_text_len {}: trained as an "
                                 "empty text",
                                 for_message(text), count, max_text_len));
  }
  auto result = all_blank(dictionary, max_text_len, "");
  std::string dropped;
  const std::string folded = dictionary.lower() ? to_lower(text) : std::string(text);
  for (const auto character : characters(folded)) {
    const int32_t found = dictionary.find(character);
    if (found < 0) {
      dropped += character;
    } else {
      result.text_seq.at(static_cast<size_t>(result.length++)) = found;
    }
  }
  if (!dropped.empty()) {
    result.remark =
        fmt::format("'{}': not in the dictionary: '{}'{}", for_message(text), for_message(dropped),
                    result.length == 0 ? "; nothing is left" : "");
  }
  return result;
}

int64_t ctc_length(std::string_view text) {
  const auto all = characters(text);
  auto length = static_cast<int64_t>(all.size());
  for (size_t i = 1; i < all.size(); ++i) length += all[i] == all[i - 1] ? 1 : 0;
  return length;
}

}  // namespace lockstep::ocr
