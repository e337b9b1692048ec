#include "lockstep/ocr/geometry/polygon.h"

#include <gtest/gtest.h>

#include <limits>
#include <opencv2/imgproc.hpp>

#include "lockstep/error.h"

namespace lockstep::ocr {
namespace {

using Rings = std::vector<std::vector<cv::Point>>;

// The expected rings come from pyclipper for the same corners, in its order.
const Polygon kBox = {{10.9F, 10.2F}, {50.7F, 10.9F}, {50.1F, 30.9F}, {10, 30.3F}};

TEST(Offset, ShrinksFromCornersCutToWholePixels) {
  EXPECT_EQ(offset(kBox, -4.7), (Rings{{{45, 25}, {15, 25}, {15, 15}, {45, 15}}}));
}

TEST(Offset, GrowsWithRoundCorners) {
  EXPECT_EQ(offset(kBox, 3.3), (Rings{{{52, 8},
                                       {53, 10},
                                       {53, 30},
                                       {52, 32},
                                       {50, 33},
                                       {10, 33},
                                       {8, 32},
                                       {7, 30},
                                       {7, 10},
                                       {8, 8},
                                       {10, 7},
                                       {50, 7}}}));
}

TEST(Offset, CutsNegativeCoordinatesTowardsZero) {
  const Polygon around = {{-5.9F, -5.9F}, {5.9F, -5.9F}, {5.9F, 5.9F}, {-5.9F, 5.9F}};
  EXPECT_EQ(offset(around, -1), (Rings{{{4, 4}, {-4, 4}, {-4, -4}, {4, -4}}}));
}

TEST(Offset, DirectionOfTheCornersDoesNotMatter) {
  const Polygon reversed(kBox.rbegin(), kBox.rend());
  EXPECT_EQ(offset(reversed, -4.7).size(), 1U);
  EXPECT_EQ(cv::Rect(15, 15, 31, 11), cv::boundingRect(offset(reversed, -4.7)[0]));
}

TEST(Offset, ShrinksToNothing) {
  EXPECT_TRUE(offset(kBox, -40).empty());
}

TEST(Offset, ShrinkingCanFallApart) {
  const Polygon barbell = {{0, 0},   {30, 0},  {30, 12}, {60, 12}, {60, 0},  {90, 0},
                           {90, 30}, {60, 30}, {60, 18}, {30, 18}, {30, 30}, {0, 30}};
  EXPECT_EQ(offset(barbell, -5),
            (Rings{{{85, 25}, {65, 25}, {65, 18}, {64, 15}, {65, 12}, {65, 5}, {85, 5}},
                   {{25, 12}, {26, 15}, {25, 18}, {25, 25}, {5, 25}, {5, 5}, {25, 5}}}));
}

TEST(Offset, OfLessThanAPolygonIsNothing) {
  EXPECT_TRUE(offset(Polygon{}, 2).empty());
  EXPECT_TRUE(offset(Polygon{{1, 1}, {9, 1}}, -2).empty());
}

TEST(Offset, OfWholePixelsIsTheSame) {
  EXPECT_EQ(offset(std::vector<cv::Point>{{10, 10}, {50, 10}, {50, 30}, {10, 30}}, -4.7),
            offset(kBox, -4.7));
}

TEST(Offset, RefusesWhatNoPictureHas) {
  EXPECT_THROW(offset(Polygon{{0, 0}, {1e9F, 0}, {1, 1}}, 1), Error);
  EXPECT_THROW(offset(Polygon{{0, 0}, {std::numeric_limits<float>::quiet_NaN(), 0}, {1, 1}}, 1),
               Error);
}

}  // namespace
}  // namespace lockstep::ocr
