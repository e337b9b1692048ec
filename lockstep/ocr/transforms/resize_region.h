#pragma once

#include <algorithm>
#include <cstdint>
#include <opencv2/core.hpp>

namespace lockstep::ocr {

/// The two neighbours of a resized image's pixel among `side` source pixels, the same one twice
/// beyond the borders. Their weights are OpenCV's, with a sum of 2048.
struct Between {
  int first, second;
  int16_t first_weight, second_weight;
};

/// `step`: source pixels per pixel of the result.
inline Between between(int at, double step, int side) {
  constexpr int kOne = 2048;  // OpenCV's weights have 11 bits
  const auto place = static_cast<float>((at + 0.5) * step - 0.5);
  auto below = static_cast<int>(place);
  if (static_cast<float>(below) > place) --below;  // std::floor() is a call
  const float rest = place - static_cast<float>(below);
  return {std::clamp(below, 0, side - 1), std::clamp(below + 1, 0, side - 1),
          cv::saturate_cast<int16_t>((1 - rest) * kOne), cv::saturate_cast<int16_t>(rest * kOne)};
}

/// The source pixels, in an image of size `from`, for `part` of that image resized by `scale`.
cv::Rect source_of_resized(cv::Size from, double scale, const cv::Rect& part);

/// `part` of the result of cv::resize(image, .., {}, scale, scale) (linear), without the rest.
/// `pixels` holds the part source_of_resized() of the image of size `from`; `origin` is its upper
/// left. 8-bit images are computed here, with OpenCV's fixed-point numbers; others by OpenCV's
/// warpAffine.
cv::Mat resized_part(const cv::Mat& pixels, cv::Point origin, cv::Size from, double scale,
                     const cv::Rect& part);

/// The result of cv::resize(.., {}, second, second) for that part. Only the rows and columns that
/// the second resize uses are computed.
cv::Mat resized_twice(const cv::Mat& pixels, cv::Point origin, cv::Size from, double scale,
                      const cv::Rect& part, double second);

/// Size of cv::resize(.., {}, scale, scale).
cv::Size resized_size(cv::Size size, double scale);

}  // namespace lockstep::ocr
