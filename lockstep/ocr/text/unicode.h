#pragma once
// UTF-8 texts of labels. A "character" is a code point, as in Python.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::ocr {

/// Whether the bytes are UTF-8 without a zero byte.
bool is_utf8(std::string_view text);

/// Number of characters. `text` must be UTF-8.
int64_t count_characters(std::string_view text);

/// The single characters; they point into `text`, which must be UTF-8.
std::vector<std::string_view> characters(std::string_view text);

/// Lower case by Unicode's tables, in any locale. `text` must be UTF-8.
std::string to_lower(std::string_view text);

/// Unicode's compatibility decomposition (form NFKD). `text` must be UTF-8.
std::string to_nfkd(std::string_view text);

/// A text for a message: at most 60 characters, then "...". Control characters become "?", because
/// they could move a terminal's cursor. `text` must be UTF-8.
std::string for_message(std::string_view text);

}  // namespace lockstep::ocr
