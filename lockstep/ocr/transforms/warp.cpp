#include "lockstep/ocr/transforms/warp.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>

#include "lockstep/base/error.h"
#include "lockstep/ocr/transforms/decode.h"

namespace lockstep::ocr {
namespace {

template <typename Move>
void move_corners(Sample& sample, Move move) {
  for (auto& region : sample.regions) {
    for (auto& corner : region.polygon) corner = move(corner);
  }
}

/// The image may share its pixels with `original`, so results are written elsewhere.
void rotate_image(cv::Mat& image, const cv::Matx23d& matrix, cv::Size size) {
  cv::Mat turned;
  cv::warpAffine(image, turned, matrix, size);
  image = turned;
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

}  // namespace

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

void random_scale(const RandomScale& options, Sample& sample, Philox& draws) {
  if (draws.uniform() >= options.p) return;
  const auto [low, high] = limited_range(options, sample.image.size());
  const double scale = low + (high - low) * draws.uniform();
  if (!(static_cast<double>(sample.image.total()) * scale * scale <= kMaxImagePixels)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("RandomScale: {} x {} pixels times {} are more than {}",
                            sample.image.cols, sample.image.rows, scale, kMaxImagePixels));
  }
  cv::Mat scaled;
  cv::resize(sample.image, scaled, {}, scale, scale);
  sample.image = scaled;
  const auto factor = static_cast<float>(scale);
  move_corners(sample, [factor](cv::Point2f corner) { return corner * factor; });
}

void random_rotate(const RandomRotate& options, Sample& sample, Philox& draws) {
  if (draws.uniform() >= options.p) return;
  const auto [low, high] = options.degrees;
  const auto count = static_cast<uint32_t>(std::max(high - low, 1));
  const auto angle = static_cast<double>(low + draws.below(count));
  cv::Size size = sample.image.size();
  const cv::Point2d centre(size.width / 2, size.height / 2);  // NOLINT: whole pixels
  cv::Matx23d matrix = cv::getRotationMatrix2D(centre, angle, 1);
  if (options.expand_canvas) matrix = expanded(matrix, centre, size);
  rotate_image(sample.image, matrix, size);
  move_corners(sample, [&matrix](cv::Point2f corner) {
    const cv::Vec2d moved = matrix * cv::Vec3d(corner.x, corner.y, 1);
    return cv::Point2f(static_cast<float>(moved[0]), static_cast<float>(moved[1]));
  });
}

void random_flip(const RandomHorizontalFlip& options, Sample& sample, Philox& draws) {
  if (draws.uniform() >= options.p) return;
  cv::Mat mirrored;
  cv::flip(sample.image, mirrored, 1);
  sample.image = mirrored;
  const auto last = static_cast<float>(sample.image.cols - 1);
  move_corners(sample,
               [last](cv::Point2f corner) { return cv::Point2f(last - corner.x, corner.y); });
  for (auto& region : sample.regions) std::reverse(region.polygon.begin(), region.polygon.end());
}

}  // namespace lockstep::ocr
