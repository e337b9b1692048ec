#include "lockstep/ocr/transforms/augment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>

#include "lockstep/error.h"
#include "lockstep/ocr/transforms/crop.h"
#include "lockstep/ocr/transforms/image_frame.h"
#include "lockstep/ocr/transforms/resize_region.h"

namespace lockstep::ocr {
namespace {

/// Draws all warps and moves the regions.
std::vector<Warp> decide(const std::vector<WarpOptions>& options, size_t place,
                         const SampleDraws& draws, Sample& sample) {
  std::vector<Warp> warps;
  cv::Size size = sample.image.size();
  for (const auto& one : options) {
    Philox stream = draws.at(place++);
    const auto warp = std::visit([&](const auto& o) { return draw(o, size, stream); }, one);
    if (!warp) continue;
    move_regions(*warp, sample.regions);
    size = warp->to;
    warps.push_back(*warp);
  }
  return warps;
}

cv::Size size_after(const std::vector<Warp>& warps, const Sample& sample) {
  return warps.empty() ? sample.image.size() : warps.back().to;
}

cv::Matx23d expanded(cv::Matx23d matrix, cv::Point2d centre, cv::Size& size) {
  const double cosine = std::abs(matrix(0, 0)), sine = std::abs(matrix(0, 1));
  const double height = size.height, width = size.width;
  size = {static_cast<int>(height * sine + width * cosine),
          static_cast<int>(height * cosine + width * sine)};
  matrix(0, 2) += size.width / 2.0 - centre.x;
  matrix(1, 2) += size.height / 2.0 - centre.y;
  return matrix;
}

cv::Point2d moved(const cv::Matx23d& matrix, cv::Point2d point) {
  const cv::Vec2d at = matrix * cv::Vec3d(point.x, point.y, 1);
  return {at[0], at[1]};
}

/// The source pixels for `part` of the rotated image.
cv::Rect before_rotation(const Warp& warp, const cv::Rect& part) {
  cv::Matx23d back;
  cv::invertAffineTransform(warp.matrix, back);
  double left = 1e9, top = 1e9, right = -1e9, bottom = -1e9;
  for (const auto& corner :
       {part.tl(), part.br(), cv::Point(part.x, part.br().y), cv::Point(part.br().x, part.y)}) {
    const auto at = moved(back, corner);
    left = std::min(left, at.x), right = std::max(right, at.x);
    top = std::min(top, at.y), bottom = std::max(bottom, at.y);
  }
  constexpr int kMargin = 2;  // one pixel for interpolation, one for rounding
  const cv::Point low(static_cast<int>(std::floor(left)) - kMargin,
                      static_cast<int>(std::floor(top)) - kMargin);
  const cv::Point high(static_cast<int>(std::ceil(right)) + kMargin,
                       static_cast<int>(std::ceil(bottom)) + kMargin);
  return cv::Rect(low, high) & cv::Rect({}, warp.from);
}

cv::Rect before(const Warp& warp, const cv::Rect& part) {
  switch (warp.kind) {
    case Warp::Kind::kScale:
      return source_of_resized(warp.from, warp.scale, part);
    case Warp::Kind::kRotate:
      return before_rotation(warp, part);
    case Warp::Kind::kFlip:
      break;
  }
  return {warp.from.width - part.br().x, part.y, part.width, part.height};
}

/// `part` of the result, computed from the pixels of `source` alone.
cv::Mat rotated(const Warp& warp, const cv::Mat& pixels, const cv::Rect& source,
                const cv::Rect& part) {
  cv::Mat result;
  if (pixels.empty()) return cv::Mat::zeros(part.size(), pixels.type());
  cv::Matx23d matrix = warp.matrix;
  const cv::Point2d origin = moved(warp.matrix, source.tl());
  matrix(0, 2) = origin.x - part.x;
  matrix(1, 2) = origin.y - part.y;
  cv::warpAffine(pixels, result, matrix, part.size());
  return result;
}

cv::Mat carried_out(const Warp& warp, const cv::Mat& pixels, const cv::Rect& source,
                    const cv::Rect& part) {
  cv::Mat result;
  switch (warp.kind) {
    case Warp::Kind::kScale:
      if (part.size() != warp.to) {
        return resized_part(pixels, source.tl(), warp.from, warp.scale, part);
      }
      cv::resize(pixels, result, {}, warp.scale, warp.scale);
      return result;
    case Warp::Kind::kRotate:
      return rotated(warp, pixels, source, part);
    case Warp::Kind::kFlip:
      break;
  }
  cv::flip(pixels, result, 1);
  return result;
}

}  // namespace

void warp_image(const std::vector<WarpOptions>& warps, size_t place, const SampleDraws& draws,
                Sample& sample) {
  const auto decided = decide(warps, place, draws, sample);
  if (decided.empty()) return;
  sample.image = warped_part(decided, sample.image, cv::Rect({}, size_after(decided, sample)));
}

void warp_and_crop(const std::vector<WarpOptions>& warps, const RandomCropWithBBox& crop,
                   size_t place, const SampleDraws& draws, Sample& sample) {
  const auto decided = decide(warps, place, draws, sample);
  Philox stream = draws.at(place + warps.size());
  const cv::Rect part = draw_crop(crop, sample.regions, size_after(decided, sample), stream);
  const double scale = fitting_scale(crop, part);
  if (resized_size(part.size(), scale).empty()) {  // so thin that the canvas has no pixel for it
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("RandomCropWithBBox: nothing is left of {} x {} pixels on a canvas of "
                            "{} x {}",
                            part.width, part.height, crop.crop_size[1], crop.crop_size[0]));
  }
  place_crop(crop, part, scale, warped_part(decided, sample.image, part, scale), sample);
}

std::array<double, 2> limited_range(const RandomScale& options, cv::Size size) {
  auto [low, high] = options.scale_range;
  if (low > high) std::swap(low, high);
  if (options.size_limits) {
    const auto [shortest, longest] =
        std::minmax((*options.size_limits)[0], (*options.size_limits)[1]);
    const auto [small_side, large_side] = std::minmax(size.width, size.height);
    low = std::max(low, shortest / small_side);
    high = std::min(high, longest / large_side);
  }
  return {low, high};
}

std::optional<Warp> draw(const RandomScale& options, cv::Size size, Philox& draws) {
  if (draws.uniform() >= options.p) return std::nullopt;
  const auto [low, high] = limited_range(options, size);
  const double scale = low + (high - low) * draws.uniform();
  const double width = std::nearbyint(size.width * scale);
  const double height = std::nearbyint(size.height * scale);
  if (!(width >= 1 && height >= 1 && width * height <= kMaxImagePixels)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("RandomScale: {} x {} pixels times {}; allowed: 1 to {} pixels",
                            size.width, size.height, scale, kMaxImagePixels));
  }
  return Warp{.kind = Warp::Kind::kScale,
              .from = size,
              .to = {static_cast<int>(width), static_cast<int>(height)},
              .scale = scale};
}

std::optional<Warp> draw(const RandomRotate& options, cv::Size size, Philox& draws) {
  if (draws.uniform() >= options.p) return std::nullopt;
  const auto [low, high] = options.degrees;
  const auto angle =
      static_cast<double>(low + draws.below(static_cast<uint32_t>(std::max(high - low, 1))));
  const cv::Point2d centre(size.width / 2, size.height / 2);  // NOLINT: whole pixels
  Warp warp{.kind = Warp::Kind::kRotate,
            .from = size,
            .to = size,
            .matrix = cv::getRotationMatrix2D(centre, angle, 1)};
  if (options.expand_canvas) warp.matrix = expanded(warp.matrix, centre, warp.to);
  return warp;
}

std::optional<Warp> draw(const RandomHorizontalFlip& options, cv::Size size, Philox& draws) {
  if (draws.uniform() >= options.p) return std::nullopt;
  return Warp{.kind = Warp::Kind::kFlip, .from = size, .to = size};
}

void move_regions(const Warp& warp, std::vector<TextRegion>& regions) {
  const auto last = static_cast<float>(warp.from.width - 1);
  const auto factor = static_cast<float>(warp.scale);
  for (auto& region : regions) {
    for (auto& corner : region.polygon) {
      if (warp.kind == Warp::Kind::kScale) corner *= factor;
      if (warp.kind == Warp::Kind::kRotate) corner = moved(warp.matrix, corner);
      if (warp.kind == Warp::Kind::kFlip) corner.x = last - corner.x;
    }
    if (warp.kind == Warp::Kind::kFlip) std::reverse(region.polygon.begin(), region.polygon.end());
  }
}

cv::Mat warped_part(const std::vector<Warp>& warps, const cv::Mat& image, const cv::Rect& part) {
  std::vector<cv::Rect> parts = {part};  // from the last result back to the image
  for (auto warp = warps.rbegin(); warp != warps.rend(); ++warp) {
    parts.push_back(before(*warp, parts.back()));
  }
  cv::Mat pixels = image(parts.back());
  for (const Warp& warp : warps) {
    const cv::Rect source = parts.back();
    parts.pop_back();
    pixels = carried_out(warp, pixels, source, parts.back());
  }
  return pixels;
}

cv::Mat warped_part(const std::vector<Warp>& warps, const cv::Mat& image, const cv::Rect& part,
                    double scale) {
  if (warps.empty() || warps.back().kind != Warp::Kind::kScale) {
    cv::Mat result;
    cv::resize(warped_part(warps, image, part), result, {}, scale, scale);
    return result;
  }
  const Warp& last = warps.back();
  const cv::Rect source = before(last, part);
  const cv::Mat pixels = warped_part({warps.begin(), warps.end() - 1}, image, source);
  return resized_twice(pixels, source.tl(), last.from, last.scale, part, scale);
}

}  // namespace lockstep::ocr
