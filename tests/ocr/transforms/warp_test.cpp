#include "lockstep/ocr/transforms/augment.h"

#include <cmath>
#include <random>

#include "lockstep/ocr/transforms/resize_region.h"
#include "tests/data/errors.h"
#include "tests/ocr/transforms/pictures.h"

namespace lockstep::ocr {
namespace {

using testing::error_of;

Philox stream(uint64_t index) {
  return {7, 0, index};
}

double greatest_difference(const cv::Mat& a, const cv::Mat& b) {
  return cv::norm(a, b, cv::NORM_INF);
}

Warp scaling(cv::Size from, double scale) {
  Philox draws = stream(0);
  return *draw(RandomScale{.scale_range = {scale, scale}, .p = 1}, from, draws);
}

Warp turning(cv::Size from, int degrees, bool expand) {
  Philox draws = stream(0);
  return *draw(RandomRotate{.degrees = {degrees, degrees + 1}, .expand_canvas = expand}, from,
               draws);
}

cv::Mat whole(const std::vector<Warp>& warps, const cv::Mat& image) {
  return warped_part(warps, image, cv::Rect({}, warps.back().to));
}

TEST(Warp, AFlipMirrorsColumnsAndCorners) {
  Philox draws = stream(0);
  const auto flip = draw(RandomHorizontalFlip{.p = 1}, {10, 4}, draws);
  ASSERT_TRUE(flip);
  std::vector<TextRegion> regions = {{{{1, 0}, {4, 0}, {4, 3}}, "a"}};
  move_regions(*flip, regions);
  EXPECT_EQ(regions[0].polygon, (Polygon{{5, 3}, {5, 0}, {8, 0}}));
  const cv::Mat image = gradient(4, 10), mirrored = whole({*flip}, image);
  EXPECT_EQ(mirrored.at<cv::Vec3b>(2, 9), image.at<cv::Vec3b>(2, 0));
  EXPECT_FALSE(draw(RandomHorizontalFlip{.p = 0}, {10, 4}, draws));
}

TEST(Warp, ScalingMovesCornersByTheFactor) {
  const Warp warp = scaling({101, 50}, 1.5);
  EXPECT_EQ(warp.to, cv::Size(152, 75));  // 151.5, half to the even
  std::vector<TextRegion> regions = {{{{2, 4}, {10, 4}, {10, 8}}, "a"}};
  move_regions(warp, regions);
  EXPECT_EQ(regions[0].polygon, (Polygon{{3, 6}, {15, 6}, {15, 12}}));
}

TEST(Warp, AQuarterTurnGoesCounterclockwise) {
  const Warp kept = turning({100, 60}, 90, false);
  EXPECT_EQ(kept.to, cv::Size(100, 60));
  std::vector<TextRegion> regions = {{{{60, 30}, {50, 30}, {50, 20}}, "a"}};
  move_regions(kept, regions);
  const Polygon expected = {{50, 20}, {50, 30}, {40, 30}};
  for (size_t i = 0; i < 3; ++i) EXPECT_LT(cv::norm(regions[0].polygon[i] - expected[i]), 1e-4);

  const Warp expanded = turning({100, 60}, 90, true);
  EXPECT_EQ(expanded.to, cv::Size(60, 100));
  cv::Mat image = cv::Mat::zeros(60, 100, CV_8UC3);
  image.at<cv::Vec3b>(10, 70) = {255, 255, 255};
  EXPECT_EQ(whole({expanded}, image).at<cv::Vec3b>(30, 10), cv::Vec3b(255, 255, 255));
}

TEST(Warp, AngleIsDrawnFromWholeDegreesBelowTheUpperEnd) {
  const RandomRotate options{.degrees = {-2, 2}};
  std::array<int, 5> seen{};
  for (uint64_t i = 0; i < 200; ++i) {
    Philox draws = stream(i);
    const auto warp = draw(options, {100, 100}, draws);
    const double degrees = std::asin(warp->matrix(0, 1)) * 180 / CV_PI;
    EXPECT_NEAR(degrees, std::nearbyint(degrees), 1e-6);
    ++seen.at(static_cast<size_t>(std::lround(degrees) + 2));
  }
  for (size_t i = 0; i < 4; ++i) EXPECT_GT(seen.at(i), 20);
  EXPECT_EQ(seen[4], 0);
}

TEST(Warp, SizeLimitsNarrowTheRange) {
  const RandomScale options{.scale_range = {3, 0.5}, .size_limits = std::array{200.0, 600.0}};
  EXPECT_EQ(limited_range(options, {300, 100}), (std::array{2.0, 2.0}));
  EXPECT_EQ(limited_range(options, {300, 200}), (std::array{1.0, 2.0}));
  EXPECT_EQ(limited_range({.scale_range = {3, 0.5}}, {300, 200}), (std::array{0.5, 3.0}));
}

TEST(Warp, RefusesAnImageThatNoMemoryHolds) {
  error_of(ErrorCode::kInvalidArgument, [] { scaling({10000, 10000}, 10); });
  error_of(ErrorCode::kInvalidArgument, [] { scaling({10, 10}, 0.001); });
}

TEST(WarpedPart, OfAScaledImageIsOpenCvsCutAfter) {
  std::mt19937 random(3);
  for (const int type : {CV_8UC3, CV_8UC1}) {
    cv::Mat image(47, 61, type);
    cv::randu(image, 0, 256);
    for (int i = 0; i < 200; ++i) {
      const Warp warp = scaling(image.size(), 0.4 + random() % 1000 / 400.0);
      cv::Mat all;
      cv::resize(image, all, {}, warp.scale, warp.scale);
      ASSERT_EQ(all.size(), warp.to);
      const int x = static_cast<int>(random() % warp.to.width);
      const int y = static_cast<int>(random() % warp.to.height);
      const cv::Rect part(x, y, 1 + static_cast<int>(random() % (warp.to.width - x)),
                          1 + static_cast<int>(random() % (warp.to.height - y)));
      ASSERT_LE(greatest_difference(warped_part({warp}, image, part), all(part)), 1)
          << warp.scale << part;

      const double second = 0.2 + random() % 1000 / 250.0;
      const cv::Size fitted = resized_size(part.size(), second);
      if (fitted.empty()) continue;
      cv::Mat expected;
      cv::resize(all(part), expected, {}, second, second);
      ASSERT_LE(greatest_difference(warped_part({warp}, image, part, second), expected), 2)
          << warp.scale << part << second;
    }
  }
}

TEST(WarpedPart, OfSeveralStepsIsTheirWholeCutAfter) {
  const cv::Mat image = gradient(120, 160);
  const Warp turn = turning(image.size(), 8, false);
  Philox draws = stream(0);
  const Warp flip = *draw(RandomHorizontalFlip{.p = 1}, turn.to, draws);
  const Warp scale = scaling(flip.to, 1.7);
  const std::vector<Warp> warps = {turn, flip, scale};
  cv::Mat all;
  cv::warpAffine(image, all, turn.matrix, turn.to);
  cv::flip(all, all, 1);
  cv::resize(all, all, {}, 1.7, 1.7);
  ASSERT_EQ(all.size(), scale.to);
  for (const auto& part : {cv::Rect(0, 0, 272, 204), cv::Rect(100, 60, 70, 90),
                           cv::Rect(0, 190, 20, 14), cv::Rect(271, 0, 1, 1)}) {
    cv::Mat difference;
    cv::absdiff(warped_part(warps, image, part), all(part), difference);
    // A shift of 1/32 pixel moves the steep third channel by 7 * 1.7 / 32 at most, its wrap by 8.
    EXPECT_LT(cv::mean(difference.reshape(1))[0], 0.5) << part;
    EXPECT_LE(cv::norm(difference, cv::NORM_INF), 10) << part;
  }
}

TEST(WarpedPart, OutsideATurnedImageIsBlack) {
  const cv::Mat image(100, 100, CV_8UC3, cv::Scalar(9, 9, 9));
  const Warp turn = turning(image.size(), 45, true);
  const cv::Mat corner = warped_part({turn}, image, {0, 0, 10, 10});
  EXPECT_EQ(cv::norm(corner, cv::NORM_INF), 0);
}

}  // namespace
}  // namespace lockstep::ocr
