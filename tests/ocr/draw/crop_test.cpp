#include "lockstep/ocr/draw/crop.h"

#include <opencv2/imgproc.hpp>

#include "tests/data/errors.h"

namespace lockstep::ocr {
namespace {

using testing::error_of;

// Red grows to the right, green downwards, by two a pixel: a crop's colours show its origin.
cv::Mat gradient() {
  cv::Mat image(100, 120, CV_8UC3);
  for (int y = 0; y < image.rows; ++y) {
    for (int x = 0; x < image.cols; ++x) {
      image.at<cv::Vec3b>(y, x) = {0, static_cast<uint8_t>(2 * y), static_cast<uint8_t>(2 * x)};
    }
  }
  return image;
}

cv::Point from(const cv::Mat& crop, int x, int y) {
  const auto& pixel = crop.at<cv::Vec3b>(y, x);
  return {pixel[2] / 2, pixel[1] / 2};
}

TEST(Crop, OfAnUprightRectangleIsThatPartOfTheImage) {
  const cv::Mat crop = crop_text_region(gradient(), {{20, 30}, {60, 30}, {60, 45}, {20, 45}});
  ASSERT_EQ(crop.size(), cv::Size(40, 15));
  EXPECT_EQ(cv::norm(crop, gradient()(cv::Rect(20, 30, 40, 15)), cv::NORM_INF), 0);
}

TEST(Crop, StraightensATurnedRectangle) {
  // 50 along (4, 3) and 20 along (-3, 4).
  const cv::Mat crop = crop_text_region(gradient(), {{40, 20}, {80, 50}, {68, 66}, {28, 36}});
  ASSERT_EQ(crop.size(), cv::Size(50, 20));
  EXPECT_EQ(from(crop, 0, 0), cv::Point(40, 20));
  EXPECT_EQ(from(crop, 25, 0), cv::Point(60, 35));
  EXPECT_EQ(from(crop, 0, 10), cv::Point(34, 28));
}

TEST(Crop, TakesTheLongerOfOppositeSides) {
  const cv::Mat crop = crop_text_region(gradient(), {{20, 20}, {60, 20}, {70, 40}, {10, 36}});
  EXPECT_EQ(crop.size(), cv::Size(60, 22));
}

TEST(Crop, TurnsTextThatRunsDownwards) {
  const cv::Mat high = crop_text_region(gradient(), {{20, 30}, {40, 30}, {40, 60}, {20, 60}});
  ASSERT_EQ(high.size(), cv::Size(30, 20));  // from 20 x 30
  EXPECT_EQ(from(high, 0, 0), cv::Point(39, 30));
  const cv::Mat almost = crop_text_region(gradient(), {{20, 30}, {40, 30}, {40, 59}, {20, 59}});
  EXPECT_EQ(almost.size(), cv::Size(20, 29));
}

TEST(Crop, BeyondTheEdgeRepeatsTheLastPixels) {
  const cv::Mat crop = crop_text_region(gradient(), {{-10, 30}, {30, 30}, {30, 40}, {-10, 40}});
  EXPECT_EQ(from(crop, 0, 0), cv::Point(0, 30));
  EXPECT_EQ(from(crop, 20, 0), cv::Point(10, 30));
}

TEST(Crop, OfAPolygonIsThatOfTheRectangleAroundIt) {
  const cv::Mat crop = crop_text_region(
      gradient(), {{20, 30}, {40, 33}, {60, 30}, {60.9F, 45}, {40, 48.9F}, {20, 45}});
  EXPECT_EQ(crop.size(), cv::Size(40, 18));
  EXPECT_EQ(from(crop, 0, 0), cv::Point(20, 30));
}

TEST(Crop, OfAFlatQuadIsOnePixelHigh) {
  const cv::Mat crop = crop_text_region(gradient(), {{20, 30}, {60, 30}, {60, 30}, {20, 30}});
  EXPECT_EQ(crop.size(), cv::Size(40, 1));
}

TEST(Crop, OfNothingIsAnError) {
  EXPECT_NE(error_of(ErrorCode::kInvalidArgument,
                     [] {
                       crop_text_region(gradient(), {{1, 1}, {2, 2}});
                     })
                .find("2 corners"),
            std::string::npos);
  error_of(ErrorCode::kInvalidArgument, [] {
    crop_text_region(cv::Mat(), {{1, 1}, {2, 2}, {3, 1}});
  });
}

}  // namespace
}  // namespace lockstep::ocr
