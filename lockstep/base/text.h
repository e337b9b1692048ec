#pragma once
// Small helpers for messages.

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::inline internal {

/// The candidate that a misspelt name most likely meant, or "" if none is near. It differs in case
/// alone, or has the smallest edit distance: at most a third of the name's length and at least 2.
/// For names of up to four letters it is 1, and not in the first.
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

/// ", did you mean 'X'?" for the nearest candidate, or "".
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

/// "0,3,5-8": the numbers, but of `least` or more that follow each other only the first and last.
std::string runs_of(const std::vector<int>& numbers, std::string_view separator, size_t least);

/// "0, 3, 5-8": a sorted list of ranks, runs joined.
std::string rank_list(std::vector<int> ranks);

/// "rank 3", "ranks 0, 5-8".
std::string rank_words(const std::vector<int>& ranks);

/// "24.0 MiB".
std::string format_bytes(int64_t bytes);

/// Two hex digits a byte: "00ff".
std::string hex_digits(std::span<const uint8_t> bytes);

/// "0:07", "12:34", "1:02:03", "2d 03:04".
std::string format_duration(std::chrono::seconds duration);

/// Replaces characters that control a terminal by '?': bytes below a space, DEL, and the controls
/// of UTF-8 (U+0080 to U+009F).
std::string without_controls(std::string text);

/// `text`, or of a longer one the first `most` bytes, without a part of a character, and "...".
std::string shortened(std::string_view text, size_t most);

/// `text` as a cell of a CSV file: in quotes if it needs them.
std::string csv_cell(const std::string& text);

/// `text` as XML's text, with references in the place of '&', '<' and '>'.
std::string xml_text(std::string_view text);

/// `text` in double quotes, as YAML reads it. Control characters of ASCII are escaped, and U+FFFD
/// takes the place of each byte that is not UTF-8.
std::string double_quoted(std::string_view text);

/// Without the blanks at both ends.
std::string_view trimmed(std::string_view text, std::string_view blanks = " \t\n\r\v\f");

/// Whether it has letters of ASCII, digits, '_', '-' and '.' alone, and one at least.
bool is_plain_name(std::string_view text);

/// Up to the first line break.
std::string_view first_line(std::string_view text);

/// The message of an exception of libtorch, without the stack frames that follow it.
std::string_view without_frames(std::string_view what);

/// Letters of ASCII in lower case.
std::string ascii_lower(std::string text);

/// "PLACE: WHAT"; `what` alone if it names the place already, as a whole word.
std::string with_place(std::string_view place, std::string_view what);

std::vector<std::string> split(std::string_view text, char separator);

}  // namespace lockstep::inline internal
