#include "lockstep/ocr/transforms/det_targets.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/ocr/geometry/polygon.h"
#include "tests/ocr/transforms/pictures.h"

namespace lockstep::ocr {
namespace {

Sample bordered(std::vector<TextRegion> regions) {
  Sample sample;
  sample.image = cv::Mat::zeros(100, 200, CV_8UC3);
  sample.regions = std::move(regions);
  make_border_map({}, sample);
  return sample;
}

/// The literal formula: cosine of the angle of the edge at the pixel.
double distance_by_formula(cv::Point2d pixel, cv::Point2d p, cv::Point2d q) {
  const double a = (p - pixel).ddot(p - pixel), b = (q - pixel).ddot(q - pixel);
  const double c = (p - q).ddot(p - q);
  const double cosine = (a + b - c) / (2 * std::sqrt(a * b));
  if (cosine >= 0) return std::sqrt(std::min(a, b));
  const double sine_sq = std::isnan(cosine) ? 0 : 1 - cosine * cosine;
  return std::sqrt(a * b * sine_sq / c);
}

double value_by_formula(cv::Point2d pixel, const Polygon& polygon, double limit) {
  double nearest = limit;
  for (size_t i = 0; i < polygon.size(); ++i) {
    const double distance =
        distance_by_formula(pixel, polygon[i], polygon[(i + 1) % polygon.size()]);
    if (!std::isnan(distance)) nearest = std::min(nearest, distance);
  }
  return 1 - nearest / limit;
}

/// Evaluates both regions' boxes everywhere, which also checks the program's restriction to them.
cv::Mat map_by_formula(const std::vector<TextRegion>& regions, cv::Size size) {
  cv::Mat map = cv::Mat::zeros(size, CV_32F);
  for (const auto& region : regions) {
    const double limit = offset_distance(region.polygon, 0.4);
    const cv::Rect box = cv::boundingRect(offset(region.polygon, limit).front());
    for (int y = 0; y < size.height; ++y) {
      for (int x = 0; x < size.width; ++x) {
        if (!box.contains({x, y})) continue;
        auto& value = map.at<float>(y, x);
        value = std::max(
            value, static_cast<float>(value_by_formula(cv::Point(x, y), region.polygon, limit)));
      }
    }
  }
  return map * 0.4 + 0.3;
}

// 100 x 40: the distance is 12.
TEST(BorderMap, FallsFromTheEdgeToTheDistance) {
  const auto sample = bordered({{rectangle(20, 30, 120, 70), "a"}});
  const auto at = [&](int x, int y) { return sample.thresh_map.at<float>(y, x); };
  EXPECT_NEAR(at(70, 30), 0.7, 1e-6);
  EXPECT_NEAR(at(70, 33), 0.3 + 0.4 * 9 / 12, 1e-6);
  EXPECT_NEAR(at(70, 24), 0.3 + 0.4 * 6 / 12, 1e-6);
  EXPECT_NEAR(at(70, 18), 0.3, 1e-6);
  EXPECT_NEAR(at(70, 50), 0.3, 1e-6);
  EXPECT_NEAR(at(0, 0), 0.3, 1e-6);
  EXPECT_NEAR(at(20, 30), 0.7, 1e-6);                         // on a corner
  EXPECT_NEAR(at(17, 26), 0.3 + 0.4 * (1 - 5.0 / 12), 1e-6);  // 3, 4 from the corner
  EXPECT_EQ(sample.thresh_mask.at<float>(30, 9), 1);
  EXPECT_EQ(sample.thresh_mask.at<float>(30, 7), 0);
  EXPECT_EQ(sample.thresh_mask.at<float>(18, 70), 1);
}

TEST(BorderMap, IsTheFormulaOnEveryPixel) {
  const std::vector<TextRegion> regions = {
      {{{20.3F, 21.7F}, {90.1F, 35.2F}, {84.6F, 60.9F}, {14.8F, 47.3F}}, "slanted"},
      {{{60.2F, 40.4F}, {150.7F, 38.1F}, {170.9F, 55.5F}, {148.3F, 80.6F}, {62.4F, 77.7F}}, "five"},
      {{{160.2F, 70.3F}, {260.4F, 75.1F}, {250.6F, 130.2F}, {155.5F, 120.8F}}, "over the edge"},
      {{{-20.4F, -9.6F}, {30.5F, -8.2F}, {30.6F, -8.1F}, {29.9F, 11.3F}, {-21.1F, 10.2F}}, "near"},
  };
  const auto sample = bordered(regions);
  const cv::Mat expected = map_by_formula(regions, {200, 100});
  EXPECT_LT(cv::norm(sample.thresh_map, expected, cv::NORM_INF), 1e-4);
  EXPECT_GT(cv::norm(expected - 0.3, cv::NORM_L1), 100);
}

TEST(BorderMap, IgnoredAndDegenerateRegionsLeaveNothing) {
  const auto sample = bordered({{rectangle(20, 30, 120, 70), "###", true},
                                {{{5, 5}, {5, 5}, {5, 5}}, "a point"},
                                {{{5, 5}, {9, 5}, {30, 5}}, "a line"}});
  EXPECT_EQ(cv::norm(sample.thresh_map - 0.3F, cv::NORM_INF), 0);
  EXPECT_EQ(cv::norm(sample.thresh_mask, cv::NORM_INF), 0);
}

}  // namespace
}  // namespace lockstep::ocr
