#include "lockstep/ocr/data/label_line.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.h"
#include "lockstep/ocr/text/unicode.h"

namespace lockstep::ocr {
namespace {

constexpr size_t kMaxLineBytes = 16 << 20;  // far above ten thousand regions
constexpr std::string_view kBlanks = " \t\r\n\v\f";

std::string_view trimmed(std::string_view line) {
  const size_t begin = line.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(kBlanks) - begin + 1);
}

}  // namespace

LabelLine split_label_line(std::string_view line, const std::string& where) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::kCorrupt, where + ": " + why);
  };
  if (line.size() > kMaxLineBytes) {
    refuse(fmt::format("a line of {} bytes; allowed: {}", line.size(), kMaxLineBytes));
  }
  if (line.find('\0') != std::string_view::npos) refuse("a zero byte: no text");
  if (!is_utf8(line)) refuse("not UTF-8");
  const auto text = trimmed(line);
  const char separator = text.find('\t') != std::string_view::npos ? '\t' : ' ';
  const auto count = std::count(text.begin(), text.end(), separator);
  if (count == 0 && line.find('\t') != std::string_view::npos) {
    refuse("nothing on one side of the tab; allowed: IMAGE<TAB>LABEL");
  }
  if (count != 1) {
    refuse(
        fmt::format("{} between image and label; allowed: IMAGE<TAB>LABEL, or one blank instead "
                    "of the tab where there is no other",
                    count == 0          ? std::string("neither tab nor blank")
                    : separator == '\t' ? fmt::format("{} tabs", count)
                                        : fmt::format("no tab but {} blanks", count)));
  }
  const size_t at = text.find(separator);
  return {.image = std::string(text.substr(0, at)), .label = std::string(text.substr(at + 1))};
}

}  // namespace lockstep::ocr
