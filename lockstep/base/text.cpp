#include "lockstep/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>
#include <utility>

#include "lockstep/base/counted.h"

namespace lockstep::inline internal {
namespace {

/// The number of insertions, deletions, replacements and swaps of neighbours that turn `a` into
/// `b`: the optimal string alignment distance. Swapped letters are the commonest slip, so they
/// count as one.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, above, row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(above, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, above[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

bool same_but_for_case(std::string_view a, std::string_view b) {
  const auto lower = [](unsigned char letter) { return std::tolower(letter); };
  return std::ranges::equal(a, b, {}, lower, lower);
}

/// The first letter of a short name is rarely wrong: "top" is not "stop".
bool may_be_meant(std::string_view name, std::string_view candidate) {
  if (name.size() > 4 || name.empty() || candidate.empty()) return true;
  const bool swapped =
      name.size() > 1 && candidate.size() > 1 && name[0] == candidate[1] && name[1] == candidate[0];
  return name[0] == candidate[0] || swapped;
}

/// How many bytes the first character of `text` has; 0 if it is not UTF-8. `text` is not empty.
size_t character_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return 1;
  const size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc0 || byte(0) > 0xf4 || text.size() < length) return 0;
  uint32_t code = byte(0) & (0x7fU >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr std::array<uint32_t, 3> kLeast = {0x80, 0x800, 0x10000};  // with fewer bytes otherwise
  const bool half = code >= 0xd800 && code < 0xe000;                  // of UTF-16
  return code >= kLeast[length - 2] && code <= 0x10ffff && !half ? length : 0;
}

}  // namespace

std::string nearest_name(std::string_view name, std::span<const std::string> candidates) {
  std::string best;
  const size_t limit = name.size() <= 4 ? 1 : std::max<size_t>(2, name.size() / 3);
  size_t best_distance = limit + 1;
  for (const auto& candidate : candidates) {
    if (same_but_for_case(name, candidate)) return candidate;
    if (!may_be_meant(name, candidate)) continue;
    const size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates) {
  const auto best = nearest_name(name, candidates);
  return best.empty() ? "" : fmt::format(", did you mean '{}'?", best);
}

std::string runs_of(const std::vector<int>& numbers, std::string_view separator, size_t least) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (end - i < least) end = i + 1;
    if (!text.empty()) text += separator;
    text += std::to_string(numbers[i]);
    if (end - i > 1) text += fmt::format("-{}", numbers[end - 1]);
    i = end;
  }
  return text;
}

std::string rank_list(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  return runs_of(ranks, ", ", 3);
}

std::string rank_words(const std::vector<int>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", rank_list(ranks));
}

std::string format_bytes(int64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string format_duration(std::chrono::seconds duration) {
  const int64_t seconds = std::max<int64_t>(duration.count(), 0);
  const int64_t minutes = seconds / 60;
  const int64_t hours = minutes / 60;
  if (hours >= 24) return fmt::format("{}d {:02}:{:02}", hours / 24, hours % 24, minutes % 60);
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes % 60, seconds % 60);
  return fmt::format("{}:{:02}", minutes, seconds % 60);
}

std::string hex_digits(std::span<const uint8_t> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string counted(int64_t number, std::string_view one, std::string_view many) {
  std::string text = std::to_string(number) + " ";
  if (number != 1 && !many.empty()) return text.append(many);
  text.append(one);
  return number == 1 ? text : text + "s";
}

std::string without_controls(std::string text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
    if (byte == 0xc2 && next >= 0x80 && next < 0xa0) {
      text.replace(i, 2, "?");
    } else if (byte < ' ' || byte == 0x7f) {
      text[i] = '?';
    }
  }
  return text;
}

std::string shortened(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  constexpr size_t kMostOfCharacter = 4;
  size_t end = most;
  while (end > 0 && most - end < kMostOfCharacter && (text[end] & 0xc0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "...";
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string cell = "\"";
  for (const char c : text) {
    if (c == '"') cell += '"';
    cell += c;
  }
  return cell + '"';
}

std::string xml_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string double_quoted(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text[0]);
    const size_t length = character_length(text);
    if (length == 0) {
      out += "\xef\xbf\xbd";
    } else if (byte == '"' || byte == '\\') {
      out.append("\\").append(text.substr(0, 1));
    } else if (byte == '\n') {
      out += "\\n";
    } else if (byte < ' ' || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out + '"';
}

std::string_view trimmed(std::string_view text, std::string_view blanks) {
  const size_t begin = std::min(text.find_first_not_of(blanks), text.size());
  return text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

bool is_plain_name(std::string_view text) {
  constexpr std::string_view kAllowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
  return !text.empty() && text.find_first_not_of(kAllowed) == std::string_view::npos;
}

std::string_view first_line(std::string_view text) {
  return text.substr(0, text.find('\n'));
}

std::string_view without_frames(std::string_view what) {
  return what.substr(0, what.find("\nException raised from "));
}

std::string ascii_lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

std::string with_place(std::string_view place, std::string_view what) {
  const auto ends_word = [&](size_t at) {
    return at >= what.size() || what[at] == ':' || what[at] == ' ';
  };
  for (size_t at = what.find(place); at != what.npos; at = what.find(place, at + 1)) {
    const bool begins_word = at == 0 || what[at - 1] == ' ';
    if (begins_word && ends_word(at + place.size())) return std::string(what);
  }
  return fmt::format("{}: {}", place, what);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t cut = text.find(separator);
    parts.emplace_back(text.substr(0, cut));
    if (cut == std::string_view::npos) return parts;
    text.remove_prefix(cut + 1);
  }
}

}  // namespace lockstep::inline internal
