#include "lockstep/ocr/text/unicode.h"

#include <glib.h>

#include <algorithm>
#include <memory>
#include <new>

namespace lockstep::ocr {
namespace {

bool starts_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char byte) { return static_cast<unsigned char>(byte) < 0x80; });
}

/// A control character of ASCII, or one of U+0080 .. U+009F.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (first < 0x20 || first == 0x7F) return true;
  return first == 0xC2 && character.size() == 2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

std::string take(char* made) {
  if (made == nullptr) throw std::bad_alloc();
  const std::unique_ptr<char, void (*)(void*)> owned(made, g_free);
  return owned.get();
}

}  // namespace

bool is_utf8(std::string_view text) {
  return g_utf8_validate_len(text.data(), text.size(), nullptr) != 0;
}

int64_t count_characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(), starts_character);
}

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> result;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin + 1;
    while (end < text.size() && !starts_character(text[end])) ++end;
    result.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return result;
}

std::string to_lower(std::string_view text) {
  if (is_ascii(text)) {
    std::string lower(text);
    for (char& byte : lower) byte = g_ascii_tolower(byte);
    return lower;
  }
  std::string lower;
  for (const auto character : characters(text)) {
    // One by one: GLib's g_utf8_strdown() depends on the locale.
    const gunichar wide = g_utf8_get_char(character.data());
    char bytes[6];
    const int size = g_unichar_to_utf8(g_unichar_tolower(wide), bytes);
    lower.append(bytes, static_cast<size_t>(size));
  }
  return lower;
}

std::string to_nfkd(std::string_view text) {
  return is_ascii(text) ? std::string(text)
                        : take(g_utf8_normalize(text.data(), static_cast<gssize>(text.size()),
                                                G_NORMALIZE_NFKD));
}

std::string for_message(std::string_view text) {
  constexpr int kMost = 60;
  std::string shown;
  int count = 0;
  for (size_t at = 0; at < text.size(); ++count) {
    if (count == kMost) return shown + "...";
    size_t end = at + 1;
    while (end < text.size() && !starts_character(text[end])) ++end;
    const auto one = text.substr(at, end - at);
    shown += is_control(one) ? "?" : one;
    at = end;
  }
  return shown;
}

}  // namespace lockstep::ocr
