#include "lockstep/ocr/convert/lines.h"

#include <fmt/format.h>
#include <iconv.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <memory>

#include "lockstep/base/number.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/ocr/text/unicode.h"

namespace lockstep::ocr {
namespace {

// A broken piece of text, as shown in a message.
std::string shown(std::string_view text) {
  std::string piece = shortened(text, 60);
  for (char& letter : piece) {
    if (static_cast<unsigned char>(letter) < ' ' || static_cast<unsigned char>(letter) > '~') {
      letter = '?';
    }
  }
  return "'" + piece + "'";
}

}  // namespace

void throw_bad_label(const LinePlace& at, const std::string& what) {
  throw Error(ErrorCode::kCorrupt, at.line == 0 ? fmt::format("{}: {}", at.file, what)
                                                : fmt::format("{}:{}: {}", at.file, at.line, what));
}

std::vector<std::string> text_lines(std::string text, const std::string& file) {
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  std::vector<std::string> lines;
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = text.find_first_of("\r\n", at);
    lines.push_back(text.substr(at, end == std::string::npos ? end : end - at));
    if (!is_utf8(lines.back())) {
      throw_bad_label({file, static_cast<int64_t>(lines.size())}, "not UTF-8");
    }
    if (end == std::string::npos) break;
    at = end + (text.compare(end, 2, "\r\n") == 0 ? 2 : 1);
  }
  return lines;
}

std::string from_gbk(const std::string& text, bool pass_over, const std::string& file) {
  const std::unique_ptr<void, int (*)(void*)> coder(::iconv_open("UTF-8", "GBK"), ::iconv_close);
  if (reinterpret_cast<std::intptr_t>(coder.get()) == -1) {
    throw Error(ErrorCode::kUnavailable, "this system's iconv has no GBK (package libc-bin)");
  }
  std::string result;
  std::array<char, 4096> room;
  char* in = const_cast<char*>(text.data());  // iconv's old signature; it only reads
  size_t left = text.size();
  while (left > 0) {
    char* out = room.data();
    size_t free = room.size();
    const bool is_fault = ::iconv(coder.get(), &in, &left, &out, &free) == static_cast<size_t>(-1);
    const int fault = errno;
    result.append(room.data(), out);
    if (!is_fault || fault == E2BIG) continue;
    if (!pass_over) {
      const auto line = 1 + std::count(text.data(), static_cast<const char*>(in), '\n');
      throw_bad_label({file, line}, "not GBK");
    }
    ++in;
    --left;
  }
  return result;
}

std::vector<std::string> split_text(std::string_view text, std::string_view separator,
                                    size_t most) {
  std::vector<std::string> pieces;
  while (pieces.size() < most) {
    const size_t end = text.find(separator);
    if (end == std::string_view::npos) break;
    pieces.emplace_back(text.substr(0, end));
    text.remove_prefix(end + separator.size());
  }
  pieces.emplace_back(text);
  return pieces;
}

std::string without(std::string text, std::string_view piece) {
  for (size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at)) {
    text.erase(at, piece.size());
  }
  return text;
}

int64_t whole_number(std::string_view text, const LinePlace& at) {
  std::string_view number = trimmed(text);
  if (number.starts_with('+')) number.remove_prefix(1);
  constexpr int64_t kMost = 9'999'999'999;
  const auto value = as_number<int64_t>(number);
  if (!value || *value < -kMost || *value > kMost) {
    throw_bad_label(at, shown(text) + " is no whole number");
  }
  return *value;
}

double real_number(std::string_view text, const LinePlace& at) {
  std::string_view number = trimmed(text);
  if (number.starts_with('+')) number.remove_prefix(1);
  const auto value = as_number<double>(number);
  if (!value || !std::isfinite(*value)) throw_bad_label(at, shown(text) + " is no number");
  return *value;
}

}  // namespace lockstep::ocr
