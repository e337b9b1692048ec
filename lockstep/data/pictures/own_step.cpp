#include "lockstep/data/pictures/own_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "lockstep/base/philox.h"
#include "lockstep/data/pictures/pipeline.h"
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

cv::Mat apply_own_step(const OwnTransform& step, const cv::Mat& picture, RandomNumbers& random) {
  Picture changed = picture_of(picture);
  apply_own_transform(step, changed, random);
  return matrix_of(changed);
}

PictureTransform step_as_transform(PictureStep step) {
  const bool random = draws_numbers(step);
  std::vector<PictureStep> steps;
  steps.push_back(std::move(step));
  const auto pipeline = std::make_shared<const PicturePipeline>(std::move(steps), /*seed=*/0);
  const RandomTransform change = [pipeline](Picture& picture, RandomNumbers& numbers) {
    if (picture.bytes().empty()) throw std::invalid_argument("the picture was moved away");
    const cv::Mat pixels(picture.height(), picture.width(), CV_8UC3, picture.bytes().data());
    picture = picture_of(pipeline->apply(already_decoded(pixels), numbers).pixels);
  };
  if (random) return change;
  return PlainTransform([change](Picture& picture) {
    Philox stream(0, 0, 0);  // no number is drawn
    StreamNumbers numbers(stream);
    change(picture, numbers);
  });
}

}  // namespace lockstep::inline internal
