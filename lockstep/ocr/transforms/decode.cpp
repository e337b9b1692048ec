#include "lockstep/ocr/transforms/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <optional>
#include <span>

#include "lockstep/base/file.h"
#include "lockstep/base/reading_note.h"
#include "lockstep/error.h"
#include "lockstep/ocr/transforms/image_frame.h"
#include "lockstep/ocr/transforms/jpeg.h"
#include "lockstep/ocr/transforms/png.h"

namespace lockstep::ocr {
namespace {

using Bytes = std::span<const uint8_t>;

int read_flags(const DecodeImage& options) {
  const int flags = options.img_mode == ImageMode::kGray ? cv::IMREAD_GRAYSCALE : cv::IMREAD_COLOR;
  return options.ignore_orientation ? flags | cv::IMREAD_IGNORE_ORIENTATION : flags;
}

cv::Mat decode_by_opencv(Bytes bytes, const DecodeImage& options) {
  const auto plain = is_png(bytes) ? plain_png(bytes) : std::vector<uint8_t>();
  if (!plain.empty()) bytes = plain;
  // OpenCV takes no const data, but reads only.
  const cv::Mat view(1, static_cast<int>(bytes.size()), CV_8U, const_cast<uint8_t*>(bytes.data()));
  cv::Mat image = cv::imdecode(view, read_flags(options));
  if (image.empty()) throw Error(ErrorCode::kCorrupt, "no image, or a damaged one");
  if (options.img_mode == ImageMode::kRgb) cv::cvtColor(image, image, cv::COLOR_BGR2RGB);
  return image;
}

cv::Mat decode(Bytes bytes, const DecodeImage& options) {
  if (const auto fault = image_fault(bytes); !fault.empty()) {
    throw Error(ErrorCode::kCorrupt, fault);
  }
  std::optional<cv::Mat> image;
  if (is_jpeg(bytes)) image = decode_jpeg(bytes, options.img_mode, options.ignore_orientation);
  if (!image) image = decode_by_opencv(bytes, options);
  if (options.to_float32) image->convertTo(*image, CV_32F);
  return *image;
}

}  // namespace

void decode_image(const DecodeImage& options, Sample& sample) {
  if (sample.encoded.empty()) {
    const ReadingNote note(sample.source);
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
