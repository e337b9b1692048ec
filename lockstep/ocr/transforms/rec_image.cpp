#include "lockstep/ocr/transforms/rec_image.h"

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>

#include "lockstep/ocr/transforms/det_resize.h"
#include "lockstep/ocr/transforms/normalize.h"
#include "lockstep/ocr/transforms/resize_planes.h"

namespace lockstep::ocr {
namespace {

void widen(int width, cv::Mat& image) {
  if (image.cols == width) return;
  cv::Mat placed = cv::Mat::zeros(image.rows, width, image.type());
  image.copyTo(placed.colRange(0, image.cols));
  image = placed;
}

/// Columns without padding.
int width_of_pixels(const RecResizeImg& options, cv::Size from) {
  const auto [height, width] = options.image_shape;
  return options.padding ? proportional_width(from, height, width) : width;
}

/// The channels of an 8-bit image without padding, resized; valid until the thread's next call.
/// Null for another image.
std::vector<cv::Mat>* filled_planes(const RecResizeImg& options, Sample& sample) {
  const auto [height, width] = options.image_shape;
  const bool is_filled = width_of_pixels(options, sample.image.size()) == width;
  if (!is_filled || sample.image.type() != CV_8UC3) return nullptr;
  thread_local std::vector<cv::Mat> planes;
  resize_to_planes(sample.image, {width, height}, planes);
  sample.valid_ratio = 1;
  return &planes;
}

}  // namespace

NormalizeImage normalization_of(const RecResizeNormForInfer& options) {
  NormalizeImage norm{.mean = options.mean, .std = options.std, .left_out = options.left_out};
  for (double& mean : norm.mean) mean *= options.divisor;
  for (double& std : norm.std) std *= options.divisor;
  return norm;
}

int proportional_width(cv::Size size, int height, int limit) {
  const double ratio = static_cast<double>(size.width) / size.height;
  return static_cast<int>(std::min<double>(limit, std::ceil(height * ratio)));
}

void rec_resize(const RecResizeImg& options, Sample& sample) {
  const auto [height, width] = options.image_shape;
  const int resized_width = width_of_pixels(options, sample.image.size());
  cv::Mat resized;
  cv::resize(sample.image, resized, {resized_width, height});
  sample.image = resized;
  widen(width, sample.image);
  sample.valid_ratio = static_cast<float>(resized_width) / static_cast<float>(width);
}

void rec_resize_to_planar(const RecResizeImg& options, const NormalizeImage& norm, Sample& sample) {
  auto* const planes = filled_planes(options, sample);
  if (planes == nullptr) {
    rec_resize(options, sample);
    return normalize_to_planar(norm, sample);
  }
  sample.image = normalized_planes(norm, *planes);
  sample.planar = true;
}

void rec_resize_in_order(const RecResizeImg& options, const NormalizeImage& norm, Sample& sample) {
  auto* const planes = filled_planes(options, sample);
  if (planes == nullptr) {
    rec_resize(options, sample);
    return normalize_image(norm, sample);
  }
  if (norm.swap_channels) std::reverse(planes->begin(), planes->end());
  cv::Mat merged;
  cv::merge(*planes, merged);
  sample.image = merged;
}

void rec_resize_normalize(const RecResizeNormForInfer& options, Sample& sample) {
  const cv::Size size = sample.image.size();
  const int height = options.target_height;
  const int width = options.keep_ratio ? proportional_width(size, height, options.target_width)
                                       : options.target_width;
  cv::Mat resized;
  cv::resize(sample.image, resized, {width, height}, 0, 0, opencv_flag(options.interpolation));
  sample.image = resized;
  sample.resize = {static_cast<float>(size.height), static_cast<float>(size.width),
                   static_cast<float>(static_cast<double>(height) / size.height),
                   static_cast<float>(static_cast<double>(width) / size.width)};
  const NormalizeImage norm = normalization_of(options);
  if (options.norm_before_pad) normalize_image(norm, sample);
  if (options.padding && options.keep_ratio) widen(options.target_width, sample.image);
  if (!options.norm_before_pad) normalize_image(norm, sample);
}

void rotate_if_vertical(const Rotate90IfVertical& options, Sample& sample) {
  const double ratio = static_cast<double>(sample.image.rows) / sample.image.cols;
  if (ratio <= options.threshold) return;
  cv::Mat turned;
  cv::rotate(sample.image, turned,
             options.counterclockwise ? cv::ROTATE_90_COUNTERCLOCKWISE : cv::ROTATE_90_CLOCKWISE);
  sample.image = turned;
}

}  // namespace lockstep::ocr
