#include "lockstep/ocr/transforms/png.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace lockstep::ocr {
namespace {

using Bytes = std::span<const uint8_t>;

constexpr std::array<uint8_t, 8> kSignature = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};

uint32_t number_at(Bytes bytes, size_t at) {
  return uint32_t{bytes[at]} << 24 | uint32_t{bytes[at + 1]} << 16 | uint32_t{bytes[at + 2]} << 8 |
         bytes[at + 3];
}

struct Chunk {
  size_t begin = 0;  ///< Of its length field.
  size_t bytes = 0;  ///< With length, type and checksum.
  std::string_view type;
};

/// The chunk at `begin`; one of no bytes where the file ends before it does.
Chunk chunk_at(Bytes file, size_t begin) {
  constexpr size_t kAround = 12;
  const size_t left = file.size() - begin;
  if (left < kAround) return {};
  const size_t length = number_at(file, begin);
  if (length > left - kAround) return {};
  return {begin, length + kAround, {reinterpret_cast<const char*>(file.data()) + begin + 4, 4}};
}

bool has_its_checksum(Bytes file, const Chunk& chunk) {
  const Bytes covered = file.subspan(chunk.begin + 4, chunk.bytes - 8);
  const auto sum = crc32(0, covered.data(), static_cast<uInt>(covered.size()));
  return sum == number_at(file, chunk.begin + chunk.bytes - 4);
}

/// Those with a capital first, which no decoder may pass over.
bool is_critical(const Chunk& chunk) {
  return chunk.type[0] >= 'A' && chunk.type[0] <= 'Z';
}

}  // namespace

bool is_png(Bytes bytes) {
  return bytes.size() >= kSignature.size() &&
         std::ranges::equal(bytes.first(kSignature.size()), kSignature);
}

std::string png_fault(Bytes bytes) {
  for (size_t at = kSignature.size();;) {
    const Chunk chunk = chunk_at(bytes, at);
    if (chunk.bytes == 0) return "a PNG that is cut off";
    if (is_critical(chunk) && !has_its_checksum(bytes, chunk)) {
      return fmt::format(
          "a PNG with a damaged chunk {} at byte {}",
          std::ranges::all_of(chunk.type, [](char c) { return c >= ' ' && c <= '~'; })
              ? chunk.type
              : "without a name",
          at);
    }
    if (chunk.type == "IEND") return "";
    at += chunk.bytes;
  }
}

std::vector<uint8_t> plain_png(Bytes bytes) {
  std::vector<uint8_t> plain(bytes.begin(), bytes.begin() + kSignature.size());
  bool leaves_out = false;
  for (size_t at = kSignature.size(); at < bytes.size();) {
    const Chunk chunk = chunk_at(bytes, at);
    if (chunk.bytes == 0) break;
    const bool matters = is_critical(chunk) || chunk.type == "tRNS" || chunk.type == "eXIf";
    if (matters && has_its_checksum(bytes, chunk)) {
      const Bytes whole = bytes.subspan(at, chunk.bytes);
      plain.insert(plain.end(), whole.begin(), whole.end());
    } else {
      leaves_out = true;
    }
    at += chunk.bytes;
    if (chunk.type == "IEND") break;
  }
  if (!leaves_out) plain.clear();
  return plain;
}

}  // namespace lockstep::ocr
