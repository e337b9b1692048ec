#include "lockstep/ocr/geometry/region.h"

#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "lockstep/error.h"

namespace lockstep::ocr {
namespace {

Region box(float x, float y, float width, float height) {
  return Region({{x, y}, {x + width, y}, {x + width, y + height}, {x, y + height}});
}

const Polygon kBowTie = {{0, 0}, {10, 10}, {10, 0}, {0, 10}};

TEST(Region, OverlapOfBoxes) {
  EXPECT_DOUBLE_EQ(box(0, 0, 10, 10).intersection_area(box(5, 0, 10, 10)), 50);
  EXPECT_DOUBLE_EQ(box(0, 0, 10, 10).iou(box(5, 0, 10, 10)), 50.0 / 150);
  EXPECT_DOUBLE_EQ(box(0, 0, 10, 10).iou(box(0, 0, 10, 10)), 1);
}

TEST(Region, ExactlyHalfIsExactlyHalf) {
  EXPECT_EQ(box(0, 0, 10, 10).iou(box(0, 0, 10, 5)), 0.5);
  EXPECT_EQ(box(3, 7, 30, 11).iou(box(13, 7, 30, 11)), 0.5);
}

TEST(Region, OverlapOfFractionalCoordinatesAgreesWithShapely) {
  const Region square = box(0, 0, 10, 10);
  const Region slanted({{5, 5}, {15.5F, 5.25F}, {14, 14}, {5, 16}});
  EXPECT_DOUBLE_EQ(slanted.area(), 95.625);
  EXPECT_NEAR(square.intersection_area(slanted), 24.702380952380953, 1e-12);
  EXPECT_NEAR(square.iou(slanted), 0.14452376806547101, 1e-14);
}

TEST(Region, ConcaveOverlapInTwoPieces) {
  const Region picture = box(0, 0, 40, 30);
  const Region comb({{10, 20},
                     {20, 20},
                     {20, 50},
                     {60, 50},
                     {60, -5},
                     {50, -5},
                     {50, 40},
                     {30, 40},
                     {30, -5},
                     {10, -5}});
  EXPECT_DOUBLE_EQ(picture.intersection_area(comb), 500);
}

TEST(Region, ApartOrTouching) {
  const Region picture = box(0, 0, 40, 30);
  EXPECT_FALSE(picture.intersects(box(41, 0, 5, 5)));
  EXPECT_TRUE(picture.intersects(box(40, 0, 10, 5)));
  EXPECT_EQ(picture.intersection_area(box(40, 0, 10, 5)), 0);
  EXPECT_EQ(picture.iou(box(100, 100, 5, 5)), 0);
  EXPECT_TRUE(picture.intersection(box(40, 0, 10, 5)).empty());
}

TEST(Region, BoundingBoxesMeetButNotThePolygons) {
  EXPECT_FALSE(Region({{0, 0}, {10, 0}, {0, 10}}).intersects(Region({{10, 10}, {10, 5}, {5, 10}})));
}

TEST(Region, IntersectionGivesItsRingWithoutRepeatingACorner) {
  const auto rings = box(0, 0, 10, 10).intersection(box(4, 6, 20, 20));
  ASSERT_EQ(rings.size(), 1U);
  EXPECT_EQ(rings[0].size(), 4U);
  EXPECT_DOUBLE_EQ(Region(rings[0]).area(), 24);
}

TEST(Region, LargestPieceOfAnIntersectionFirst) {
  // A U whose legs reach 2 and 4 pixels into the picture.
  const Region legs({{0, 8}, {5, 8}, {5, 20}, {10, 20}, {10, 6}, {15, 6}, {15, 25}, {0, 25}});
  const auto rings = box(0, 0, 40, 10).intersection(legs);
  ASSERT_EQ(rings.size(), 2U);
  EXPECT_DOUBLE_EQ(Region(rings[0]).area(), 20);
  EXPECT_DOUBLE_EQ(Region(rings[1]).area(), 10);
}

TEST(Region, ValidityIsShapelys) {
  EXPECT_TRUE(box(0, 0, 1, 1).valid());
  EXPECT_TRUE(Region({{0, 0}, {10, 0}, {10, 10}, {10, 10}, {10, 10}}).valid());  // padded
  EXPECT_FALSE(Region(kBowTie).valid());
  EXPECT_FALSE(Region({{0, 0}, {10, 0}, {5, 0}}).valid());
  EXPECT_FALSE(Region({{0, 0}, {0, 0}, {0, 0}, {0, 0}}).valid());
  EXPECT_FALSE(Region({{0, 0}, {10, 0}, {10, 10}, {5, 0}, {0, 10}}).valid());
  EXPECT_FALSE(Region({{0, 0}, {10, 0}}).valid());
  EXPECT_FALSE(Region({{0, 0}, {10, 0}, {std::numeric_limits<float>::infinity(), 4}}).valid());
}

TEST(Region, SaysWhatIsWrong) {
  EXPECT_EQ(Region(kBowTie).fault(), "Self-intersection[5 5]");
  EXPECT_EQ(Region({{0, 0}, {10, 0}}).fault(), "needs three corners of finite numbers");
  EXPECT_EQ(box(0, 0, 1, 1).fault(), "");
}

TEST(Region, IntersectionOfACrossingPolygonIsAnErrorThatNamesThePlace) {
  try {
    Region(kBowTie).intersection_area(box(0, 0, 10, 10));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    EXPECT_NE(std::string(error.what()).find("at 5 5"), std::string::npos) << error.what();
  }
}

TEST(Region, ThreadsWorkSideBySideAndARegionMayMove) {
  const auto work = [] {
    for (int i = 0; i < 200; ++i) {
      Region moved = box(0, 0, 10, 10);
      moved = box(0, 0, 20, 10);
      EXPECT_DOUBLE_EQ(moved.intersection_area(box(15, 0, 10, 10)), 50);
    }
  };
  std::thread other(work);
  work();
  other.join();
}

}  // namespace
}  // namespace lockstep::ocr
