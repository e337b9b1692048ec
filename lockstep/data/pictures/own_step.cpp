#include "lockstep/data/pictures/own_step.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

/// `matrix` may be part of a larger one, whose rows have gaps between them.
Picture picture_of(const cv::Mat& matrix) {
  if (static_cast<int64_t>(matrix.total()) > Picture::kMaxPixels) {
    throw Error(ErrorCode::kCorrupt,
                fmt::format("a picture of {} x {} pixels is too large", matrix.cols, matrix.rows));
  }
  Picture picture(matrix.cols, matrix.rows);
  auto* out = picture.bytes().data();
  for (int y = 0; y < matrix.rows; ++y) {
    out = std::copy_n(matrix.ptr<uint8_t>(y), matrix.cols * 3, out);
  }
  return picture;
}

cv::Mat matrix_of(const Picture& picture) {
  cv::Mat matrix(picture.height(), picture.width(), CV_8UC3);
  std::copy_n(picture.bytes().data(), picture.bytes().size(), matrix.data);
  return matrix;
}

}  // namespace

cv::Mat apply_own_step(const OwnTransform& step, const cv::Mat& picture, Philox& random) {
  Picture changed = picture_of(picture);
  apply_own_transform(step, changed, random);
  return matrix_of(changed);
}

}  // namespace lockstep::inline internal
