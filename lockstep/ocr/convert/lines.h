#pragma once
// Text files as Python reads them, which is what the published converters did.

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

/// Lines without their ends (LF, CR LF, CR); a mark of byte order in front is dropped. A last line
/// without an end counts, an empty rest does not. Errors: kCorrupt for what is not UTF-8.
std::vector<std::string> text_lines(std::string text, const std::string& file);

/// GBK as UTF-8. Bytes that are no GBK are passed over, or an error (kCorrupt, naming the line).
std::string from_gbk(const std::string& text, bool pass_over, const std::string& file);

/// At most `most` cuts (all: npos); always at least one piece.
std::vector<std::string> split_text(std::string_view text, std::string_view separator,
                                    size_t most = std::string::npos);

/// Without blanks, tabs and line ends on both sides.
std::string strip(std::string_view text);
std::string without(std::string text, std::string_view piece);

/// A whole number with blanks around it, such as int() takes, up to 10 digits. Errors: kCorrupt.
int64_t whole_number(std::string_view text, const LinePlace& at);
/// Errors: kCorrupt for what is no finite number.
double real_number(std::string_view text, const LinePlace& at);

}  // namespace lockstep::ocr
