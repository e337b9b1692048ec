#pragma once
// Reads text files as Python does, which the published converters use.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::ocr {

/// "FILE:LINE", for messages; lines count from 1.
struct LinePlace {
  std::string file;
  int64_t line = 0;
};

/// Throws kCorrupt "FILE:LINE: WHAT"; without ":LINE" for line 0.
[[noreturn]] void throw_bad_label(const LinePlace& at, const std::string& what);

/// Lines without their ends (LF, CR LF, CR); a byte order mark in front is dropped. A last line
/// without an end counts, an empty rest does not. Errors: kCorrupt if the text is not UTF-8.
std::vector<std::string> text_lines(std::string text, const std::string& file);

/// GBK to UTF-8. Invalid bytes are skipped, or an error (kCorrupt, naming the line).
std::string from_gbk(const std::string& text, bool pass_over, const std::string& file);

/// At most `most` cuts (all: npos); always at least one piece.
std::vector<std::string> split_text(std::string_view text, std::string_view separator,
                                    size_t most = std::string::npos);

std::string without(std::string text, std::string_view piece);

/// A whole number with optional blanks around it, as for int(), up to 10 digits. Errors: kCorrupt.
int64_t whole_number(std::string_view text, const LinePlace& at);
/// Errors: kCorrupt if it is no finite number.
double real_number(std::string_view text, const LinePlace& at);

}  // namespace lockstep::ocr
