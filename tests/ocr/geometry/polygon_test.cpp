#include "lockstep/ocr/geometry/polygon.h"

#include <gtest/gtest.h>

namespace lockstep::ocr {
namespace {

TEST(Area, OfARectangleWhicheverWayItsCornersGo) {
  EXPECT_DOUBLE_EQ(area({{2, 3}, {12, 3}, {12, 8}, {2, 8}}), 50);
  EXPECT_DOUBLE_EQ(area({{2, 8}, {12, 8}, {12, 3}, {2, 3}}), 50);
}

TEST(Area, OfATriangleAndOfAConcavePolygon) {
  EXPECT_DOUBLE_EQ(area({{0, 0}, {4, 0}, {0, 3}}), 6);
  EXPECT_DOUBLE_EQ(area({{0, 0}, {4, 0}, {4, 4}, {2, 1}, {0, 4}}), 10);
}

TEST(Area, SmallFarFromTheOriginLosesNothing) {
  EXPECT_DOUBLE_EQ(area({{8e6F, 8e6F}, {8e6F + 1, 8e6F}, {8e6F + 1, 8e6F + 1}, {8e6F, 8e6F + 1}}),
                   1);
}

TEST(Area, OfCrossingLoopsCancels) {
  EXPECT_DOUBLE_EQ(area({{0, 0}, {10, 10}, {10, 0}, {0, 10}}), 0);
}

TEST(Area, OfNothingIsZero) {
  EXPECT_EQ(area({}), 0);
  EXPECT_EQ(area({{1, 1}, {5, 5}}), 0);
}

TEST(Perimeter, ClosesTheRing) {
  EXPECT_DOUBLE_EQ(perimeter({{0, 0}, {4, 0}, {0, 3}}), 12);
  EXPECT_EQ(perimeter({}), 0);
}

TEST(OrderedCorners, StartUpperLeftAndGoClockwise) {
  const std::array<cv::Point2f, 4> wanted = {{{1, 2}, {9, 1}, {10, 5}, {2, 6}}};
  EXPECT_EQ(ordered_corners({{{10, 5}, {2, 6}, {1, 2}, {9, 1}}}), wanted);
  EXPECT_EQ(ordered_corners({{{2, 6}, {1, 2}, {9, 1}, {10, 5}}}), wanted);
}

TEST(OrderedCorners, OfAnUprightDiamondTakeTheLeftmostPair) {
  // The left corner and one of the two in the middle column; sorting keeps the earlier of these
  // two.
  const auto corners = ordered_corners({{{5, 0}, {10, 5}, {5, 10}, {0, 5}}});
  const std::array<cv::Point2f, 4> wanted = {{{5, 0}, {10, 5}, {5, 10}, {0, 5}}};
  EXPECT_EQ(corners, wanted);
}

TEST(FitBox, AroundATurnedRectangle) {
  // A 3-4-5 rectangle, 20 along (4, 3) and 10 along (-3, 4).
  const FittedBox box = fit_box(Polygon{{30, 10}, {46, 22}, {40, 30}, {24, 18}, {38, 16}});
  EXPECT_NEAR(box.short_side, 10, 1e-4);
  const std::array<cv::Point2f, 4> wanted = {{{30, 10}, {46, 22}, {40, 30}, {24, 18}}};
  for (size_t i = 0; i < 4; ++i) EXPECT_LT(cv::norm(box.corners.at(i) - wanted.at(i)), 1e-3) << i;
}

TEST(FitBox, OfALineHasNoWidth) {
  EXPECT_EQ(fit_box(std::vector<cv::Point>{{3, 3}, {9, 3}}).short_side, 0);
}

}  // namespace
}  // namespace lockstep::ocr
