#pragma once

#include <opencv2/core.hpp>

namespace lockstep::ocr {

/// The pixels of an image of size `from` that `part` of it, resized by `scale`, is made of.
cv::Rect source_of_resized(cv::Size from, double scale, const cv::Rect& part);

/// `part` of what cv::resize(image, .., {}, scale, scale) makes (linear), without the rest.
/// `pixels` holds what source_of_resized() says of the image of size `from`; `origin` is its upper
/// left. 8-bit images are computed here, with OpenCV's fixed-point numbers; others by OpenCV's
/// warpAffine.
cv::Mat resized_part(const cv::Mat& pixels, cv::Point origin, cv::Size from, double scale,
                     const cv::Rect& part);

/// What cv::resize(.., {}, second, second) makes of that part, of which only those rows and columns
/// are computed that the second resizing looks at.
cv::Mat resized_twice(const cv::Mat& pixels, cv::Point origin, cv::Size from, double scale,
                      const cv::Rect& part, double second);

/// Size of cv::resize(.., {}, scale, scale).
cv::Size resized_size(cv::Size size, double scale);

}  // namespace lockstep::ocr
