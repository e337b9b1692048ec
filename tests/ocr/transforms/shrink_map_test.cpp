#include "lockstep/ocr/transforms/det_targets.h"

#include <gtest/gtest.h>

#include "tests/ocr/transforms/pictures.h"

namespace lockstep::ocr {
namespace {

Sample shrunk(std::vector<TextRegion> regions) {
  Sample sample;
  sample.image = cv::Mat::zeros(100, 200, CV_8UC3);
  sample.regions = std::move(regions);
  make_shrink_map({}, sample);
  return sample;
}

// 100 x 40: area 4000, perimeter 280, distance 4000 * 0.84 / 280 = 12.
TEST(ShrinkMap, ARectangleShrinksByTheFormula) {
  EXPECT_DOUBLE_EQ(offset_distance(rectangle(20, 30, 120, 70), 0.4), 12);
  const auto sample = shrunk({{rectangle(20, 30, 120, 70), "a"}});
  const cv::Mat inside = sample.binary_map(cv::Rect(32, 42, 77, 17));  // both ends are drawn
  EXPECT_EQ(cv::sum(inside)[0], 77 * 17);
  EXPECT_EQ(cv::sum(sample.binary_map)[0], 77 * 17);
  EXPECT_EQ(cv::sum(sample.mask)[0], 100 * 200);
  EXPECT_FALSE(sample.regions[0].ignored);
}

TEST(ShrinkMap, WhatDoesNotCountIsMaskedAndIgnored) {
  const auto sample = shrunk(
      {{rectangle(10, 10, 20.5F, 30), "###", true}, {rectangle(50, 10, 80, 17.9F), "too small"}});
  EXPECT_EQ(cv::sum(sample.binary_map)[0], 0);
  EXPECT_EQ(cv::sum(sample.mask)[0], 100 * 200 - 11 * 21 - 31 * 8);
  EXPECT_EQ(sample.mask.at<float>(10, 10), 0);
  EXPECT_TRUE(sample.regions[1].ignored);
}

TEST(ShrinkMap, ALargeOneThatVanishesIsIgnored) {
  // A slanted band so thin that Clipper's whole numbers reduce it to a line.
  const auto sample =
      shrunk({{{{20.1F, 20.1F}, {76.1F, 76.1F}, {76.6F, 76.2F}, {20.6F, 20.2F}}, "thin"}});
  EXPECT_EQ(cv::sum(sample.binary_map)[0], 0);
  EXPECT_TRUE(sample.regions[0].ignored);
  EXPECT_LT(cv::sum(sample.mask)[0], 100 * 200);
}

TEST(ShrinkMap, RegionsMayLeaveTheImage) {
  const auto sample =
      shrunk({{rectangle(-50, -50, 50, 30), "a"}, {rectangle(150, 40, 300, 200), "b"}});
  EXPECT_EQ(sample.binary_map.at<float>(0, 0), 1);
  EXPECT_EQ(sample.binary_map.at<float>(99, 199), 1);
  EXPECT_EQ(sample.binary_map.at<float>(29, 49), 0);
}

}  // namespace
}  // namespace lockstep::ocr
