#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/text.h"
#include "lockstep/ocr/convert/lines.h"
#include "lockstep/ocr/convert/parse_set.h"

namespace lockstep::ocr {
namespace {

LabelPoint whole_point(double x, double y) {
  return {std::trunc(x), std::trunc(y)};
}

/// A box rotated around its middle by `angle` radians; corners cut to whole numbers.
std::vector<LabelPoint> turned_box(double x, double y, double width, double height, double angle) {
  const double middle_x = x + width / 2, middle_y = y + height / 2;
  const auto turn = [&](double px, double py) {
    const double across = std::cos(angle) * (px - middle_x) - std::sin(angle) * (py - middle_y);
    const double down = std::cos(angle) * (py - middle_y) + std::sin(angle) * (px - middle_x);
    return whole_point(middle_x + across, middle_y + down);
  };
  return {turn(x, y), turn(x + width, y), turn(x + width, y + height), turn(x, y + height)};
}

/// Words between blanks.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  size_t at = 0;
  while ((at = text.find_first_not_of(" \t\n\v\f", at)) != std::string::npos) {
    const size_t end = std::min(text.find_first_of(" \t\n\v\f", at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

/// "x: [[1 2 3]]" without its name and brackets.
std::string value_of(const std::string& field, std::string_view separator) {
  return without(without(split_text(field, separator).back(), "["), "]");
}

LabelWord totaltext_word(const std::vector<std::string>& fields, const LinePlace& at) {
  LabelWord word;
  const auto xs = words_of(value_of(fields[0], ": ")), ys = words_of(value_of(fields[1], ": "));
  for (size_t i = 0; i < std::min(xs.size(), ys.size()); ++i) {
    word.points.push_back({static_cast<double>(whole_number(xs[i], at)),
                           static_cast<double>(whole_number(ys[i], at))});
  }
  word.text = trimmed(value_of(fields[3], ":"));
  if (word.text.find(' ') != std::string::npos) {
    throw_bad_label(at, "more than one text in the field 'transcriptions'");
  }
  if (word.text.starts_with('u')) word.text.erase(0, 1);
  word.text = without(word.text, "'");
  if (word.text == "#") word.text = "###";
  return word;
}

}  // namespace

std::vector<LabelWord> parse_td500(const std::string& text, const std::string& file,
                                   LabelNotes& /*notes*/) {
  std::vector<LabelWord> words;
  int64_t number = 0;
  for (const std::string& line : text_lines(text, file)) {
    const LinePlace at{file, ++number};
    const auto fields = split_text(line, " ");
    if (fields.size() < 7) {
      throw_bad_label(at, fmt::format("{} fields between blanks, 7 are needed", fields.size()));
    }
    const auto whole = [&](size_t i) { return static_cast<double>(whole_number(fields[i], at)); };
    LabelWord& word = words.emplace_back();
    word.points = turned_box(whole(2), whole(3), whole(4), whole(5), real_number(fields[6], at));
    word.text = fields[1] == "1" ? "###" : fields[1];
  }
  return words;
}

std::vector<LabelWord> parse_totaltext(const std::string& text, const std::string& file,
                                       LabelNotes& notes) {
  std::vector<LabelWord> words;
  std::string held;  // part of a text that continues in the next line
  int64_t number = 0;
  for (const std::string& line : text_lines(text, file)) {
    const LinePlace at{file, ++number};
    held += held.empty() ? line : "\n" + line;
    const auto fields = split_text(held, ", ");
    if (fields.size() < 4) continue;
    if (fields.size() > 4)
      throw_bad_label(at, "more than the four fields x, y, ornt, transcriptions");
    held.clear();
    LabelWord word = totaltext_word(fields, at);
    if (word.points.size() < 3) {
      notes.push_back(
          fmt::format("{}:{}: skipping a polygon of {} points", file, number, word.points.size()));
      continue;
    }
    if (!is_valid_polygon(word.points)) {
      word.points = sort_clockwise(std::move(word.points));
    } else if (signed_area(word.points) < 0) {
      std::reverse(word.points.begin(), word.points.end());
    }
    words.push_back(std::move(word));
  }
  if (!held.empty())
    throw_bad_label({file, number}, "fewer than the four fields x, y, ornt, transcriptions");
  return words;
}

std::vector<LabelWord> parse_ctw1500(const std::string& text, const std::string& file,
                                     LabelNotes& /*notes*/) {
  std::vector<LabelWord> words;
  int64_t number = 0;
  for (const std::string& line : text_lines(text, file)) {
    const LinePlace at{file, ++number};
    const auto parts = split_text(line, ",####");
    const auto numbers = split_text(parts[0], ",");
    if (numbers.size() % 2 != 0 || numbers.size() < 6) {
      throw_bad_label(
          at, fmt::format("{} coordinates; three points or more are needed", numbers.size()));
    }
    LabelWord& word = words.emplace_back();
    for (size_t i = 0; i < numbers.size(); i += 2) {
      word.points.push_back({static_cast<double>(whole_number(numbers[i], at)),
                             static_cast<double>(whole_number(numbers[i + 1], at))});
    }
    if (signed_area(word.points) < 0) std::reverse(word.points.begin(), word.points.end());
    word.text = parts.back();
  }
  return words;
}

}  // namespace lockstep::ocr
