// JPEGs as bytes: the frame, EXIF's orientation, and libjpeg with our ways out of it.

#include <cstdint>
#include <span>

#include "lockstep/error.h"
#include "lockstep/ocr/transforms/decode.h"
#include "lockstep/ocr/transforms/image_frame.h"

namespace {

/// Whether any frame in `bytes` claims a side above 1000 pixels, which would only cost time.
bool is_large(std::span<const uint8_t> bytes) {
  for (size_t i = 0; i + 8 < bytes.size(); ++i) {
    if (bytes[i] != 0xFF || bytes[i + 1] < 0xC0 || bytes[i + 1] > 0xCF) continue;
    if (bytes[i + 5] > 3 || bytes[i + 7] > 3) return true;
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep::ocr;
  const std::span<const uint8_t> bytes(data, size);
  exif_orientation(bytes);
  if (!is_jpeg(bytes) || !image_fault(bytes).empty() || is_large(bytes)) return 0;
  try {
    for (const auto mode : {ImageMode::kRgb, ImageMode::kGray}) decode_jpeg(bytes, mode, false);
    for (const int denominator : {1, 2, 8}) {
      decode_part(bytes, [&](cv::Size whole) {
        const cv::Size part((whole.width + 1) / 2, (whole.height + 1) / 2);
        return PicturePart{{{whole.width / 3, whole.height / 3}, part}, denominator};
      });
    }
  } catch (const lockstep::Error&) {
  }
  return 0;
}
