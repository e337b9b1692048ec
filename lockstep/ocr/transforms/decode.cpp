#include "lockstep/ocr/transforms/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"

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

std::string png_fault(Bytes bytes) {
  constexpr size_t kHeader = 24;
  if (bytes.size() < kHeader) return "a PNG that is cut off";
  return size_fault(big_endian(bytes, 16, 4), big_endian(bytes, 20, 4));
}

bool is_frame_marker(uint8_t marker) {  // SOF0 .. SOF15, which tell the size
  return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

/// Whether an end-of-image marker comes after `begin`, where coded data start. It cannot occur
/// within them, and stands at the very end but for what some programs append.
bool has_end(Bytes bytes, size_t begin) {
  for (size_t i = bytes.size(); i >= begin + 2; --i) {
    if (bytes[i - 2] == 0xFF && bytes[i - 1] == 0xD9) return true;
  }
  return false;
}

std::string jpeg_fault(Bytes bytes) {
  std::string cut_off = "a JPEG that is cut off";
  for (size_t at = 2; at + 4 <= bytes.size();) {
    const uint8_t marker = bytes[at + 1];
    if (bytes[at] != 0xFF) return "a JPEG with damaged segments";
    if (marker == 0xFF) {  // fill byte
      ++at;
      continue;
    }
    const size_t length = big_endian(bytes, at + 2, 2);
    if (is_frame_marker(marker) && at + 9 <= bytes.size()) {
      auto fault = size_fault(big_endian(bytes, at + 7, 2), big_endian(bytes, at + 5, 2));
      if (!fault.empty()) return fault;
    }
    if (marker == 0xDA) return has_end(bytes, at + 4) ? "" : cut_off;
    at += 2 + length;
  }
  return cut_off;
}

int read_flags(const DecodeImage& options) {
  const int flags = options.img_mode == ImageMode::kGray ? cv::IMREAD_GRAYSCALE : cv::IMREAD_COLOR;
  return options.ignore_orientation ? flags | cv::IMREAD_IGNORE_ORIENTATION : flags;
}

cv::Mat decode(Bytes bytes, const DecodeImage& options) {
  if (const auto fault = image_fault(bytes); !fault.empty()) {
    throw Error(ErrorCode::kCorrupt, fault);
  }
  // OpenCV takes no const data, but reads only.
  const cv::Mat view(1, static_cast<int>(bytes.size()), CV_8U, const_cast<uint8_t*>(bytes.data()));
  cv::Mat image = cv::imdecode(view, read_flags(options));
  if (image.empty()) throw Error(ErrorCode::kCorrupt, "no image, or a damaged one");
  if (options.img_mode == ImageMode::kRgb) cv::cvtColor(image, image, cv::COLOR_BGR2RGB);
  if (options.to_float32) image.convertTo(image, CV_32F);
  return image;
}

}  // namespace

std::string image_fault(Bytes bytes) {
  constexpr std::array<uint8_t, 8> kPng = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  if (bytes.empty()) return "an empty file";
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) return "over 2 GiB";
  if (std::ranges::equal(bytes.first(std::min(bytes.size(), kPng.size())), kPng)) {
    return png_fault(bytes);
  }
  const bool is_jpeg =
      bytes.size() >= 3 && bytes[0] == 0xFF && bytes[1] == 0xD8 && bytes[2] == 0xFF;
  return is_jpeg ? jpeg_fault(bytes) : "";
}

void decode_image(const DecodeImage& options, Sample& sample) {
  if (sample.encoded.empty()) {
    const std::string bytes = read_file(sample.source, int64_t{1} << 30);
    sample.image = decode({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, options);
  } else {
    sample.image = decode(sample.encoded, options);
    sample.encoded = {};
  }
  sample.raw_size = sample.image.size();
  if (std::min(sample.image.rows, sample.image.cols) < sample.min_side) {
    throw Error(ErrorCode::kCorrupt,
                fmt::format("an image of {} x {} pixels; allowed: at least {} a side",
                            sample.image.cols, sample.image.rows, sample.min_side));
  }
  if (options.keep_ori) sample.original = sample.image.clone();
}

}  // namespace lockstep::ocr
