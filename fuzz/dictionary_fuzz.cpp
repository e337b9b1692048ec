// Dictionaries and the labels that they encode: the bytes up to the first zero are the dictionary,
// the rest the label.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "lockstep/error.h"
#include "lockstep/ocr/text/dictionary.h"

namespace {

using namespace lockstep;

void use(std::string_view file, std::string_view label, const ocr::CharacterOptions& options) {
  const auto dictionary = ocr::Dictionary::parse(file, "input", options);
  constexpr int kLength = 8;
  const auto text = ocr::encode_text(dictionary, label, kLength);
  if (text.text_seq.size() != kLength || text.length > kLength) std::abort();
  for (size_t i = 0; i < kLength; ++i) {
    const int32_t index = text.text_seq[i];
    if (index < 0 || index >= dictionary.num_classes()) std::abort();
    const bool counts = i < static_cast<size_t>(text.length);
    if (counts != (index != dictionary.blank())) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(bytes), size);
  const auto file = input.substr(0, input.find('\0'));
  const auto label = input.substr(std::min(size, file.size() + 1));
  for (const bool last : {false, true}) {
    try {
      use(file, label,
          {.character_dict_path = "input",
           .use_space_char = last,
           .blank_at_last = last,
           .lower = last});
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kCorrupt) std::abort();
    }
  }
  return 0;
}
