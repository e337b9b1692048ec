#include "lockstep/ocr/transforms/det_resize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>

#include "lockstep/error.h"
#include "lockstep/ocr/transforms/image_frame.h"

namespace lockstep::ocr {
namespace {

using Limit = DetResize::Limit;

// A side must not overflow during the computation; the number of pixels is limited later.
int whole_side(double side) {
  return static_cast<int>(std::clamp(side, 1.0, 1e8));
}

double scale_for(const DetResize& options, const std::optional<cv::Size>& target, cv::Size size) {
  const double limit = options.limit_side_len;
  const auto [short_side, long_side] = std::minmax(size.width, size.height);
  if (options.limit_type == Limit::kMin) return short_side < limit ? limit / short_side : 1;
  if (options.limit_type == Limit::kMax) return long_side > limit ? limit / long_side : 1;
  return std::min(static_cast<double>(target->height) / size.height,
                  static_cast<double>(target->width) / size.width);
}

int rounded_to_32(int side, double scale) {
  const int cut = whole_side(side * scale);
  return std::max(32, static_cast<int>(std::nearbyint(cut / 32.0)) * 32);
}

int rounded(int side, double scale) {
  return whole_side(std::nearbyint(side * scale));
}

int raised_to(int divisor, int side) {
  return std::max(divisor, (side + divisor - 1) / divisor * divisor);
}

bool pads(const DetResize& options) {
  return options.target_size && options.keep_ratio && options.padding;
}

void place_on_canvas(cv::Size canvas, cv::Mat& image) {
  if (image.cols > canvas.width || image.rows > canvas.height) return;
  cv::Mat placed = cv::Mat::zeros(canvas, image.type());
  image.copyTo(placed(cv::Rect({}, image.size())));
  image = placed;
}

struct Scales {
  double height = 1;
  double width = 1;
};

Scales scales_of(const DetResize& options, cv::Size from, cv::Size to) {
  if (options.exact) {
    DetResize fits = options;
    fits.limit_type = Limit::kNone;
    const double scale = scale_for(fits, effective_target(options), from);
    return {scale, scale};
  }
  return {static_cast<double>(to.height) / from.height, static_cast<double>(to.width) / from.width};
}

void note_resize(cv::Size from, const Scales& scales, Sample& sample) {
  const auto scale_height = static_cast<float>(scales.height);
  const auto scale_width = static_cast<float>(scales.width);
  if (sample.resize) {
    sample.resize->scale_height *= scale_height;
    sample.resize->scale_width *= scale_height;
    return;
  }
  const cv::Size source = sample.raw_size.empty() ? from : sample.raw_size;
  sample.resize = {static_cast<float>(source.height), static_cast<float>(source.width),
                   scale_height, scale_width};
}

}  // namespace

int opencv_flag(Interpolation interpolation) {
  switch (interpolation) {
    case Interpolation::kNearest:
      return cv::INTER_NEAREST;
    case Interpolation::kLinear:
      return cv::INTER_LINEAR;
    case Interpolation::kArea:
      return cv::INTER_AREA;
    case Interpolation::kCubic:
      break;
  }
  return cv::INTER_CUBIC;
}

std::optional<cv::Size> effective_target(const DetResize& options) {
  if (!options.target_size) return std::nullopt;
  const auto [height, width] = *options.target_size;
  if (!options.force_divisable) return cv::Size(width, height);
  const auto rounded = [divisor = options.divisor](int side) {
    if (side % divisor == 0) return side;
    return std::max(
        divisor, static_cast<int>(std::nearbyint(static_cast<double>(side) / divisor)) * divisor);
  };
  return cv::Size(rounded(width), rounded(height));
}

cv::Size resized_size(const DetResize& options, cv::Size size) {
  const auto target = effective_target(options);
  const bool limited = !target && options.limit_type != Limit::kNone;
  cv::Size result = target.value_or(size);
  if (limited || (target && options.keep_ratio)) {
    DetResize effective = options;
    if (target) effective.limit_type = Limit::kNone;
    const double scale = scale_for(effective, target, size);
    const auto side = options.exact ? rounded : rounded_to_32;
    result = {side(size.width, scale), side(size.height, scale)};
    if (target) {
      result = {std::min(result.width, target->width), std::min(result.height, target->height)};
    }
  }
  if (options.force_divisable && !pads(options)) {
    result = {raised_to(options.divisor, result.width), raised_to(options.divisor, result.height)};
  }
  return result;
}

void det_resize(const DetResize& options, bool training, Sample& sample) {
  const cv::Size from = sample.image.size(), to = resized_size(options, from);
  if (int64_t{to.width} * to.height > kMaxImagePixels) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: {} x {} pixels would become {} x {}; allowed: {} in all", options.name,
                    from.width, from.height, to.width, to.height, kMaxImagePixels));
  }
  cv::Mat resized;
  cv::resize(sample.image, resized, to, 0, 0, opencv_flag(options.interpolation));
  sample.image = resized;
  if (pads(options)) place_on_canvas(*effective_target(options), sample.image);
  const Scales scales = scales_of(options, from, to);
  note_resize(from, scales, sample);
  if (!training) return;
  for (auto& region : sample.regions) {
    for (auto& corner : region.polygon) {
      corner = {static_cast<float>(corner.x * scales.width),
                static_cast<float>(corner.y * scales.height)};
    }
  }
}

}  // namespace lockstep::ocr
