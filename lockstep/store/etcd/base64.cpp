#include "lockstep/store/etcd/base64.h"

#include <array>
#include <cstdint>

#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint8_t kNoDigit = 0xff;

constexpr std::array<uint8_t, 256> make_values() {
  std::array<uint8_t, 256> values{};
  values.fill(kNoDigit);
  for (size_t i = 0; i < kDigits.size(); ++i)
    values[static_cast<uint8_t>(kDigits[i])] = static_cast<uint8_t>(i);
  return values;
}
constexpr auto kValues = make_values();

}  // namespace

std::string encode_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - at);
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i)
      group = group << 8 | (i < count ? static_cast<uint8_t>(bytes[at + i]) : 0U);
    for (size_t i = 0; i < 4; ++i) text += i <= count ? kDigits[group >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

std::string decode_base64(std::string_view text) {
  const Error wrong(ErrorCode::kCorrupt, "it is not base64");
  if (text.size() % 4 != 0) throw wrong;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t group = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const uint8_t value = at < text.size() - padding ? kValues[static_cast<uint8_t>(text[at])] : 0;
    if (value == kNoDigit) throw wrong;
    group = group << 6 | value;
    if (at % 4 != 3) continue;
    for (const int shift : {16, 8, 0}) bytes += static_cast<char>(group >> shift & 255);
    group = 0;
  }
  for (size_t i = 0; i < padding; ++i) {
    if (bytes.back() != '\0') throw wrong;
    bytes.pop_back();
  }
  return bytes;
}

}  // namespace lockstep::inline internal
