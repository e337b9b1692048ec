#include <fmt/format.h>

#include <array>

#include "lockstep/base/text.h"
#include "lockstep/ocr/convert/lines.h"
#include "lockstep/ocr/convert/parse_set.h"
#include "lockstep/ocr/text/unicode.h"

namespace lockstep::ocr {
namespace {

// A byte order mark that was read in a one-byte encoding and stored again.
constexpr std::string_view kGarbledMark = "\xc3\xaf\xc2\xbb\xc2\xbf";

std::string shown(const std::vector<LabelPoint>& points) {
  LabelWord word;
  word.points = points;
  const std::string label = label_json({word});
  const size_t begin = label.find("[[");
  return label.substr(begin, label.size() - 2 - begin);
}

void require_fields(const std::vector<std::string>& pieces, size_t fields, const LinePlace& at) {
  if (pieces.size() >= fields) return;
  throw_bad_label(at,
                  fmt::format("{} fields between commas, {} are needed", pieces.size(), fields));
}

/// Splits each line into `fields` pieces; the last holds the rest.
template <class Take>
void each_line(const std::string& text, const std::string& file, size_t fields, const Take& take) {
  int64_t number = 0;
  for (const std::string& line : text_lines(text, file)) {
    const LinePlace at{file, ++number};
    auto pieces = split_text(without(line, kGarbledMark), ",", fields - 1);
    require_fields(pieces, fields, at);
    take(pieces, at);
  }
}

std::vector<LabelPoint> corners(const std::vector<std::string>& pieces, const LinePlace& at) {
  std::vector<LabelPoint> points;
  for (size_t i = 0; i < 8; i += 2) {
    points.push_back({static_cast<double>(whole_number(pieces[i], at)),
                      static_cast<double>(whole_number(pieces[i + 1], at))});
  }
  return points;
}

std::vector<LabelPoint> quad(const std::vector<std::string>& pieces, const LinePlace& at) {
  return sort_clockwise(corners(pieces, at));
}

/// False, with a note, if the quad crosses itself or has no area.
bool keep(const LabelWord& word, const LinePlace& at, LabelNotes& notes) {
  if (is_valid_polygon(word.points)) return true;
  notes.push_back(
      fmt::format("{}:{}: skipping invalid polygon {}", at.file, at.line, shown(word.points)));
  return false;
}

}  // namespace

std::vector<LabelWord> parse_ic15(const std::string& text, const std::string& file,
                                  LabelNotes& notes) {
  std::vector<LabelWord> words;
  each_line(text, file, 9, [&](const std::vector<std::string>& pieces, const LinePlace& at) {
    LabelWord word;
    word.points = quad(pieces, at);
    word.text = pieces[8];
    if (keep(word, at, notes)) words.push_back(std::move(word));
  });
  return words;
}

std::vector<LabelWord> parse_mlt(const std::string& text, const std::string& file,
                                 LabelNotes& notes) {
  std::vector<LabelWord> words;
  each_line(text, file, 10, [&](const std::vector<std::string>& pieces, const LinePlace& at) {
    LabelWord word;
    word.points = quad(pieces, at);
    word.language = pieces[8];
    word.text = pieces[9];
    if (keep(word, at, notes)) words.push_back(std::move(word));
  });
  return words;
}

std::vector<LabelWord> parse_rctw17(const std::string& text, const std::string& file,
                                    LabelNotes& notes) {
  std::vector<LabelWord> words;
  each_line(text, file, 10, [&](const std::vector<std::string>& pieces, const LinePlace& at) {
    LabelWord word;
    word.points = quad(pieces, at);
    const size_t begin = pieces[9].find_first_not_of('"');
    const size_t end = pieces[9].find_last_not_of('"');
    if (begin != std::string::npos) word.text = pieces[9].substr(begin, end - begin + 1);
    if (pieces[8] != "0") word.text = "###";
    if (keep(word, at, notes)) words.push_back(std::move(word));
  });
  return words;
}

std::vector<LabelWord> parse_mtwi2018(const std::string& text, const std::string& file,
                                      LabelNotes& /*notes*/) {
  std::vector<LabelWord> words;
  each_line(text, file, 9, [&](const std::vector<std::string>& pieces, const LinePlace& at) {
    LabelWord& word = words.emplace_back();
    for (size_t i = 0; i < 8; i += 2) {
      word.points.push_back({real_number(pieces[i], at), real_number(pieces[i + 1], at)});
    }
    word.points = sort_clockwise(std::move(word.points));
    word.whole = false;
    word.text = pieces[8];
  });
  return words;
}

std::vector<LabelWord> parse_casia10k(const std::string& text, const std::string& file,
                                      LabelNotes& /*notes*/) {
  std::vector<LabelWord> words;
  each_line(from_gbk(text, true, file), file, 9,
            [&](const std::vector<std::string>& pieces, const LinePlace& at) {
              LabelWord& word = words.emplace_back();
              word.points = quad(pieces, at);
              word.text = pieces[8];
            });
  return words;
}

std::vector<LabelWord> parse_sroie(const std::string& text, const std::string& file,
                                   LabelNotes& notes) {
  std::vector<LabelWord> words;
  int64_t number = 0;
  for (const std::string& line : text_lines(from_gbk(text, false, file), file)) {
    const LinePlace at{file, ++number};
    const auto pieces = split_text(line, ",", 8);
    if (pieces.size() == 1) continue;
    require_fields(pieces, 9, at);
    LabelWord word;
    word.points = corners(pieces, at);
    word.text = pieces[8] == "***" ? "###" : pieces[8];
    if (keep(word, at, notes)) words.push_back(std::move(word));
  }
  return words;
}

std::vector<LabelWord> parse_borndigital(const std::string& text, const std::string& file,
                                         LabelNotes& notes) {
  std::vector<LabelWord> words;
  int64_t number = 0;
  for (const std::string& line : text_lines(text, file)) {
    const LinePlace at{file, ++number};
    const auto pieces = split_text(line, ", ", 4);
    require_fields(pieces, 5, at);
    std::array<double, 4> box;
    for (size_t i = 0; i < 4; ++i) box.at(i) = static_cast<double>(whole_number(pieces[i], at));
    LabelWord word;
    word.points = {{box[0], box[1]}, {box[2], box[1]}, {box[2], box[3]}, {box[0], box[3]}};
    const auto letters = characters(trimmed(pieces[4]));
    for (size_t i = 1; i + 1 < letters.size(); ++i) word.text += letters[i];
    if (keep(word, at, notes)) words.push_back(std::move(word));
  }
  return words;
}

std::vector<std::pair<std::string, std::string>> parse_ic15_words(const std::string& text,
                                                                  const std::string& file) {
  std::vector<std::pair<std::string, std::string>> words;
  int64_t number = 0;
  for (const std::string& line : text_lines(text, file)) {
    ++number;
    const size_t comma = line.find(',');
    if (comma == std::string::npos)
      throw_bad_label({file, number}, "no comma behind the picture's name");
    words.emplace_back(without(std::string(trimmed(line.substr(0, comma))), "\xef\xbb\xbf"),
                       without(std::string(trimmed(line.substr(comma + 1))), "\""));
  }
  return words;
}

}  // namespace lockstep::ocr
