#include "lockstep/ocr/transforms/image_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "lockstep/base/crc32.h"

namespace lockstep::ocr {
namespace {

using Bytes = std::span<const uint8_t>;

uint32_t big_endian(Bytes bytes, size_t at, size_t count) {
  uint32_t value = 0;
  for (size_t i = at; i < at + count; ++i) value = value << 8 | bytes[i];
  return value;
}

std::string size_fault(int64_t width, int64_t height) {
  if (width > 0 && height > 0 && width <= kMaxImagePixels / height) return "";
  return fmt::format("an image of {} x {} pixels; allowed: 1 to {} in all", width, height,
                     kMaxImagePixels);
}

/// Checks its size first; the rest may be unnecessary.
std::string png_file_fault(Bytes bytes) {
  constexpr size_t kHeader = 24;
  if (bytes.size() < kHeader) return "a PNG that is cut off";
  const auto fault = size_fault(big_endian(bytes, 16, 4), big_endian(bytes, 20, 4));
  return fault.empty() ? png_fault(bytes) : fault;
}

/// For a header of 40 bytes or more, as in all but OS/2's files; a negative height means top down.
/// OpenCV would print a line of its own about a file that is cut off.
std::string bmp_fault(Bytes bytes) {
  constexpr size_t kPixels = 10, kSize = 14, kWidth = 18, kHeight = 22, kBits = 28, kPacking = 30;
  constexpr size_t kShortHeader = 26, kHeader = 54;
  const auto number = [&](size_t at) {
    uint32_t value = 0;
    for (size_t i = at + 4; i > at; --i) value = value << 8 | bytes[i - 1];
    return value;
  };
  if (bytes.size() < kShortHeader) return "a BMP that is cut off";
  if (number(kSize) < 40) return "";
  if (bytes.size() < kHeader) return "a BMP that is cut off";
  const auto width = static_cast<int32_t>(number(kWidth));
  const int64_t height = std::abs(int64_t{static_cast<int32_t>(number(kHeight))});
  auto fault = size_fault(width, height);
  const bool is_packed = number(kPacking) == 1 || number(kPacking) == 2;  // of unknown length
  if (!fault.empty() || is_packed) return fault;
  const int64_t row = (int64_t{width} * (number(kBits) & 0xFFFF) + 31) / 32 * 4;
  const bool is_whole = number(kPixels) + row * height <= std::ssize(bytes);
  return is_whole ? "" : "a BMP that is cut off";
}

bool is_frame_marker(uint8_t marker) {  // SOF0 .. SOF15, which contain the size
  return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

/// Whether an end-of-image marker follows `begin`, the start of coded data. It cannot occur within
/// them; some programs append bytes behind it.
bool has_end(Bytes bytes, size_t begin) {
  for (size_t i = bytes.size(); i >= begin + 2; --i) {
    if (bytes[i - 2] == 0xFF && bytes[i - 1] == 0xD9) return true;
  }
  return false;
}

enum class Walk : uint8_t { kScan, kStopped, kCutOff, kDamaged };

/// Calls `see(marker, place of its length)` for each segment before the first scan, until it
/// returns false. `at` is the end of the walk.
template <class See>
Walk walk_segments(Bytes bytes, size_t& at, const See& see) {
  for (at = 2; at + 4 <= bytes.size();) {
    const uint8_t marker = bytes[at + 1];
    if (bytes[at] != 0xFF) return Walk::kDamaged;
    if (marker == 0xFF) {  // fill byte
      ++at;
      continue;
    }
    if (marker == 0xDA) return Walk::kScan;
    if (!see(marker, at + 2)) return Walk::kStopped;
    at += 2 + big_endian(bytes, at + 2, 2);
  }
  return Walk::kCutOff;
}

std::string jpeg_fault(Bytes bytes) {
  std::string fault;
  size_t at = 0;
  const Walk end = walk_segments(bytes, at, [&](uint8_t marker, size_t place) {
    if (is_frame_marker(marker) && place + 7 <= bytes.size()) {
      fault = size_fault(big_endian(bytes, place + 5, 2), big_endian(bytes, place + 3, 2));
    }
    return fault.empty();
  });
  if (end == Walk::kDamaged) return "a JPEG with damaged segments";
  const bool is_whole = end == Walk::kScan && has_end(bytes, at + 4);
  return fault.empty() && !is_whole ? "a JPEG that is cut off" : fault;
}

/// EXIF's directory of entries: TIFF, in either byte order.
class ExifDirectory {
 public:
  explicit ExifDirectory(Bytes tiff) : bytes_(tiff), is_big_(!tiff.empty() && tiff[0] == 'M') {}

  /// Value of an entry of 16 bits; `missing` if it is absent, or the directory is broken.
  uint32_t short_value(uint32_t tag, uint32_t missing) const {
    constexpr uint32_t kMark = 42, kEntryBytes = 12;
    const bool has_order =
        bytes_.size() >= 8 && bytes_[0] == bytes_[1] && (bytes_[0] == 'M' || bytes_[0] == 'I');
    if (!has_order || number(2, 2) != kMark) return missing;
    const size_t begin = number(4, 4);
    if (begin + 2 > bytes_.size()) return missing;
    const size_t count = number(begin, 2);
    for (size_t i = 0; i < count; ++i) {
      const size_t entry = begin + 2 + i * kEntryBytes;
      if (entry + kEntryBytes > bytes_.size()) return missing;
      if (number(entry, 2) == tag) return number(entry + 8, 2);
    }
    return missing;
  }

 private:
  uint32_t number(size_t at, size_t count) const {
    if (is_big_) return big_endian(bytes_, at, count);
    uint32_t value = 0;
    for (size_t i = at + count; i > at; --i) value = value << 8 | bytes_[i - 1];
    return value;
  }

  Bytes bytes_;
  bool is_big_;
};

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

/// The chunk at `begin`; empty if the file ends within it.
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
  const auto sum = crc32_of({reinterpret_cast<const char*>(covered.data()), covered.size()});
  return sum == number_at(file, chunk.begin + chunk.bytes - 4);
}

/// Chunks with a capital first letter, which no decoder may skip.
bool is_critical(const Chunk& chunk) {
  return chunk.type[0] >= 'A' && chunk.type[0] <= 'Z';
}

}  // namespace

bool is_jpeg(Bytes bytes) {
  return bytes.size() >= 3 && bytes[0] == 0xFF && bytes[1] == 0xD8 && bytes[2] == 0xFF;
}

std::string image_fault(Bytes bytes) {
  if (bytes.empty()) return "an empty file";
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) return "over 2 GiB";
  if (is_png(bytes)) return png_file_fault(bytes);
  if (bytes.size() >= 2 && bytes[0] == 'B' && bytes[1] == 'M') return bmp_fault(bytes);
  return is_jpeg(bytes) ? jpeg_fault(bytes) : "";
}

int exif_orientation(Bytes jpeg) {
  constexpr uint8_t kApp1 = 0xE1;
  constexpr size_t kLength = 2, kName = 6;  // the segment's own, and "Exif" with two zeros
  constexpr uint32_t kOrientation = 0x0112, kUpright = 1;
  Bytes segment;
  size_t at = 0;
  walk_segments(jpeg, at, [&](uint8_t marker, size_t place) {
    const size_t length = big_endian(jpeg, place, 2);
    const bool is_first = marker == kApp1 && length <= jpeg.size() - place;
    if (is_first) segment = jpeg.subspan(place, length);
    return !is_first;
  });
  if (segment.size() < kLength + kName) return kUpright;
  const uint32_t value =
      ExifDirectory(segment.subspan(kLength + kName)).short_value(kOrientation, kUpright);
  return value >= 1 && value <= 8 ? static_cast<int>(value) : static_cast<int>(kUpright);
}

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
