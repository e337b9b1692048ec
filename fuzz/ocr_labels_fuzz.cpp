// Any text as a label file of each published data set. What is accepted becomes one line of UTF-8.

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "lockstep/error.h"
#include "lockstep/ocr/convert/parse_set.h"
#include "lockstep/ocr/text/unicode.h"

namespace {

using namespace lockstep;
using namespace lockstep::ocr;

void require(bool holds) {
  if (!holds) std::abort();
}

constexpr std::array kParsers = {parse_ic15,     parse_mlt,         parse_rctw17,
                                 parse_mtwi2018, parse_td500,       parse_totaltext,
                                 parse_ctw1500,  parse_rects,       parse_casia10k,
                                 parse_sroie,    parse_borndigital, parse_ctw1500_xml};

void check_words(const std::vector<LabelWord>& words, size_t least_points = 3) {
  const std::string line = label_json(words);
  require(is_utf8(line));
  require(line.find('\n') == std::string::npos);
  for (const LabelWord& word : words) require(word.points.size() >= least_points);
}

void check_file(size_t kind, const std::string& text, LabelNotes& notes) {
  if (kind == 3) {
    for (const bool has_language : {false, true}) {
      for (const auto& [name, words] : parse_art(text, "file", has_language, notes)) {
        // As MindOCR's converter: an invalid polygon becomes its hull, which may have no area.
        // Reading such a label leaves the polygon out and says so.
        check_words(words, 1);
      }
    }
    return;
  }
  const auto pictures = kind == 0   ? parse_ctw(text, "file", notes)
                        : kind == 1 ? parse_textocr(text, "file", notes)
                                    : parse_cocotext(text, "file", "val", notes);
  for (const auto& picture : pictures) check_words(picture.words);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t parser = data[0] % (kParsers.size() + 6);
  LabelNotes notes;
  try {
    if (parser < kParsers.size()) {
      check_words(kParsers[parser](text, "file", notes));
    } else if (parser == kParsers.size()) {
      for (const auto& image : parse_syntext150k(text, "file")) check_words(image.words);
    } else if (parser == kParsers.size() + 1) {
      parse_ic15_words(text, "file");
    } else {
      check_file(parser - kParsers.size() - 2, text, notes);
    }
  } catch (const Error& error) {
    require(error.code() == ErrorCode::kCorrupt);
  }
  return 0;
}
