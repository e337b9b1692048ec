#include "lockstep/data/pictures/own_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lockstep/error.h"

namespace lockstep {
namespace {

/// The words of a sample's stream, in the turn of its steps.
class StreamOfSample final : public RandomNumbers {
 public:
  explicit StreamOfSample(Philox& random) : random_(random) {}
  uint32_t next() override { return random_.next(); }

 private:
  Philox& random_;
};

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

void call(const PictureTransform& transform, Picture& picture, Philox& random) {
  if (const auto* plain = std::get_if<PlainTransform>(&transform)) return (*plain)(picture);
  StreamOfSample numbers(random);
  std::get<RandomTransform>(transform)(picture, numbers);
}

}  // namespace

cv::Mat apply_own_step(const OwnPictureStep& step, const cv::Mat& picture, Philox& random) {
  Picture changed = picture_of(picture);
  try {
    call(step.transform, changed, random);
  } catch (const Error& error) {  // whatever its code: the picture is unusable
    throw Error(ErrorCode::kCorrupt, fmt::format("{}: {}", step.name, error.what()));
  } catch (const std::exception& error) {
    throw TransformFailed(fmt::format("the transform {} failed: {}", step.name, error.what()));
  } catch (...) {
    throw TransformFailed(
        fmt::format("the transform {} failed: its exception is no std::exception", step.name));
  }
  const auto size = static_cast<size_t>(changed.width()) * static_cast<size_t>(changed.height());
  if (changed.bytes().size() == 3 * size) return matrix_of(changed);
  throw TransformFailed(fmt::format("the transform {} has moved its picture away", step.name));
}

}  // namespace lockstep
