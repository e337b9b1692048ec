#include "lockstep/ocr/transforms/colour.h"

#include "tests/data/errors.h"

namespace lockstep::ocr {
namespace {

using testing::error_of;

cv::Mat pixel(int r, int g, int b) {
  return {2, 2, CV_8UC3, cv::Scalar(r, g, b)};
}

cv::Vec3b after(cv::Mat image, void (*step)(cv::Mat&, double), double factor) {
  step(image, factor);
  return image.at<cv::Vec3b>(1, 1);
}

TEST(Colour, BrightnessIsAFactor) {
  EXPECT_EQ(after(pixel(10, 100, 200), scale_brightness, 1.5), cv::Vec3b(15, 150, 255));
  EXPECT_EQ(after(pixel(10, 100, 200), scale_brightness, 0), cv::Vec3b(0, 0, 0));
}

// Grey of (10, 100, 200): 0.299 * 10 + 0.587 * 100 + 0.114 * 200 = 84.49, rounded 84.
TEST(Colour, SaturationAndContrastMoveFromGrey) {
  EXPECT_EQ(after(pixel(10, 100, 200), scale_saturation, 0), cv::Vec3b(84, 84, 84));
  EXPECT_EQ(after(pixel(10, 100, 200), scale_saturation, 0.5), cv::Vec3b(47, 92, 142));
  EXPECT_EQ(after(pixel(10, 100, 200), scale_contrast, 0.5), cv::Vec3b(47, 92, 142));
  EXPECT_EQ(after(pixel(10, 100, 200), scale_contrast, 2), cv::Vec3b(0, 116, 255));
}

TEST(Colour, HueTurnsRedToGreen) {
  EXPECT_EQ(after(pixel(200, 0, 0), turn_hue, 0), cv::Vec3b(200, 0, 0));
  const auto green = after(pixel(200, 0, 0), turn_hue, 1.0 / 3);
  EXPECT_LT(green[0], 5);
  EXPECT_EQ(green[1], 200);
  EXPECT_LT(green[2], 5);
}

TEST(Colour, FactorsComeFromTheirRangesInAnyOrder) {
  const RandomColorAdjust options{.brightness = {0.5, 0.5}, .saturation = {0, 0}};
  for (uint64_t i = 0; i < 20; ++i) {
    Sample sample;
    sample.image = pixel(10, 100, 200);
    Philox draws(1, 0, i);
    adjust_colour(options, sample, draws);
    EXPECT_EQ(sample.image.at<cv::Vec3b>(0, 0), cv::Vec3b(42, 42, 42));
  }
  Sample left;
  left.image = pixel(10, 100, 200);
  Philox draws(1, 0, 0);
  adjust_colour({.brightness = {1, 1}, .saturation = {1, 1}}, left, draws);
  EXPECT_EQ(left.image.at<cv::Vec3b>(0, 0), cv::Vec3b(10, 100, 200));
  left.image = cv::Mat(2, 2, CV_8U, cv::Scalar(1));
  error_of(ErrorCode::kInvalidArgument, [&] { adjust_colour({}, left, draws); });
}

}  // namespace
}  // namespace lockstep::ocr
