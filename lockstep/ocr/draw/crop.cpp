#include "lockstep/ocr/draw/crop.h"

#include <fmt/format.h>

#include <algorithm>
#include <opencv2/imgproc.hpp>

#include "lockstep/error.h"
#include "lockstep/ocr/geometry/polygon.h"

namespace lockstep::ocr {
namespace {

constexpr float kUpright = 1.5F;  // height over width at which text counts as vertical

std::array<cv::Point2f, 4> corners_of_region(const Polygon& polygon) {
  if (polygon.size() == 4) return {polygon[0], polygon[1], polygon[2], polygon[3]};
  std::vector<cv::Point> whole;
  for (const cv::Point2f& at : polygon) {
    whole.emplace_back(static_cast<int>(at.x), static_cast<int>(at.y));
  }
  return fit_box(whole).corners;
}

int longer(const cv::Point2f& one, const cv::Point2f& other) {
  return std::max(1, static_cast<int>(std::max(cv::norm(one), cv::norm(other))));
}

}  // namespace

cv::Mat crop_text_region(const cv::Mat& image, const Polygon& polygon) {
  if (image.empty() || polygon.size() < 3) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("no crop of {} corners from an image of {} x {} pixels", polygon.size(),
                            image.cols, image.rows));
  }
  const auto from = corners_of_region(polygon);
  const int width = longer(from[0] - from[1], from[2] - from[3]);
  const int height = longer(from[0] - from[3], from[1] - from[2]);
  const auto w = static_cast<float>(width);
  const auto h = static_cast<float>(height);
  const std::array<cv::Point2f, 4> to = {{{0, 0}, {w, 0}, {w, h}, {0, h}}};

  cv::Mat crop;
  cv::warpPerspective(image, crop, cv::getPerspectiveTransform(from.data(), to.data()),
                      {width, height}, cv::INTER_CUBIC, cv::BORDER_REPLICATE);
  if (h / w >= kUpright) cv::rotate(crop, crop, cv::ROTATE_90_COUNTERCLOCKWISE);
  return crop;
}

}  // namespace lockstep::ocr
