#include "lockstep/ocr/postprocess/db.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <opencv2/imgproc.hpp>

#include "lockstep/error.h"
#include "lockstep/ocr/geometry/polygon.h"

namespace lockstep::ocr {
namespace {

cv::Mat nothing(int rows = 100, int columns = 120) {
  return cv::Mat(rows, columns, CV_32F, cv::Scalar(0.1));
}

void fill(cv::Mat& map, const cv::Rect& where, float probability) {
  map(where) = probability;
}

DbPostprocessOptions poly() {
  DbPostprocessOptions options;
  options.box_type = DbPostprocessOptions::Box::kPoly;
  return options;
}

void expect_corners(const Polygon& polygon, const Polygon& wanted) {
  ASSERT_EQ(polygon.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_LT(cv::norm(polygon[i] - wanted[i]), 1e-3) << "corner " << i << " at " << polygon[i];
  }
}

// 60 x 20 pixels from (20, 30): the rectangle around the contour is 59 x 19, its area 1121, its
// perimeter 156. It grows by 1121 * 1.5 / 156 = 10.78: from (9.22, 19.22) to (89.78, 59.78), which
// Clipper rounds.
cv::Mat one_word() {
  cv::Mat map = nothing();
  fill(map, {20, 30, 60, 20}, 0.9F);
  return map;
}

TEST(DbPostprocess, GrowsARectangleByItsAreaOverItsPerimeter) {
  const auto found = db_postprocess(one_word(), std::nullopt, {});
  ASSERT_EQ(found.size(), 1U);
  expect_corners(found[0].polygon, {{9, 19}, {90, 19}, {90, 60}, {9, 60}});
  EXPECT_FLOAT_EQ(found[0].score, 0.9F);
}

TEST(DbPostprocess, RescalesRoundingHalfToEvenAndKeepsInsideTheSource) {
  // x: 9 / 2 = 4.5 -> 4, 90 / 2 = 45; y: 19 / 0.5 = 38, 60 / 0.5 = 120 -> 99, the last row.
  const ResizeRecord resize{
      .src_height = 100, .src_width = 60, .scale_height = 0.5F, .scale_width = 2};
  const auto found = db_postprocess(one_word(), resize, {});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].polygon, (Polygon{{4, 38}, {45, 38}, {45, 99}, {4, 99}}));
}

TEST(DbPostprocess, ScoreCountsEveryTextPixelOfTheUprightBox) {
  // An L of 100 + 40 pixels and a spot of 16 in its box; pixels below the threshold do not count.
  cv::Mat map = nothing();
  fill(map, {10, 10, 50, 2}, 0.95F);
  fill(map, {10, 12, 2, 20}, 0.95F);
  fill(map, {30, 20, 4, 4}, 0.35F);
  std::vector<std::vector<cv::Point>> contours;
  const cv::Mat bitmap = map >= 0.3;
  cv::findContours(bitmap, contours, cv::RETR_LIST, cv::CHAIN_APPROX_SIMPLE);
  ASSERT_EQ(contours.size(), 2U);
  std::vector<double> scores = {box_score(map, bitmap, contours[0]),
                                box_score(map, bitmap, contours[1])};
  std::sort(scores.begin(), scores.end());
  EXPECT_NEAR(scores[0], 0.35, 1e-6);
  EXPECT_NEAR(scores[1], (140 * 0.95 + 16 * 0.35) / 156, 1e-6);
}

TEST(DbPostprocess, DropsBelowTheThresholdOfBoxes) {
  DbPostprocessOptions options;
  options.box_thresh = 0.91;
  EXPECT_TRUE(db_postprocess(one_word(), std::nullopt, options).empty());
  options.box_thresh = 0.89;
  EXPECT_EQ(db_postprocess(one_word(), std::nullopt, options).size(), 1U);
}

TEST(DbPostprocess, AProbabilityAtTheThresholdIsText) {
  cv::Mat map = nothing();
  fill(map, {20, 30, 60, 20}, 0.7F);  // below 0.7 in double precision
  DbPostprocessOptions options;
  options.binary_thresh = 0.7;
  options.box_thresh = 0.6;
  EXPECT_EQ(db_postprocess(map, std::nullopt, options).size(), 1U);
}

TEST(DbPostprocess, DropsWhatIsThinnerThanThreePixelsBetweenCentres) {
  cv::Mat map = nothing();
  fill(map, {20, 30, 60, 3}, 0.9F);
  EXPECT_TRUE(db_postprocess(map, std::nullopt, {}).empty());
  fill(map, {20, 30, 60, 4}, 0.9F);
  EXPECT_EQ(db_postprocess(map, std::nullopt, {}).size(), 1U);
}

TEST(DbPostprocess, DropsWhatIsStillThinAfterGrowing) {
  // 4 x 4 pixels: 3 x 3 between centres, growing by 9 * ratio / 12.
  cv::Mat map = nothing();
  fill(map, {20, 30, 4, 4}, 0.9F);
  DbPostprocessOptions options;
  options.expand_ratio = 0.6;  // by 0.45, which rounds to no pixel
  EXPECT_TRUE(db_postprocess(map, std::nullopt, options).empty());
  options.expand_ratio = 1.5;
  EXPECT_EQ(db_postprocess(map, std::nullopt, options).size(), 1U);
}

TEST(DbPostprocess, EdgesOfHolesAreContoursToo) {
  cv::Mat map = nothing();
  fill(map, {20, 20, 80, 60}, 0.9F);
  fill(map, {40, 40, 30, 20}, 0);
  EXPECT_EQ(db_postprocess(map, std::nullopt, {}).size(), 2U);
}

TEST(DbPostprocess, TakesTheFirstContoursOnly) {
  cv::Mat map = nothing();
  for (int i = 0; i < 5; ++i) fill(map, {4 + 22 * i, 30, 12, 12}, 0.9F);
  DbPostprocessOptions options;
  EXPECT_EQ(db_postprocess(map, std::nullopt, options).size(), 5U);
  options.max_candidates = 3;
  EXPECT_EQ(db_postprocess(map, std::nullopt, options).size(), 3U);
}

TEST(DbPostprocess, ATurnedWordGivesItsRectangleUpperLeftFirst) {
  cv::Mat map = nothing(200, 200);
  cv::fillConvexPoly(map, std::vector<cv::Point>{{60, 60}, {140, 100}, {130, 120}, {50, 80}},
                     cv::Scalar(0.8));
  const auto found = db_postprocess(map, std::nullopt, {});
  ASSERT_EQ(found.size(), 1U);
  const Polygon& box = found[0].polygon;
  EXPECT_LT(box[0].x, box[1].x);
  EXPECT_LT(box[0].y, box[3].y);
  EXPECT_NEAR((box[1].y - box[0].y) / (box[1].x - box[0].x), 0.5, 0.05);
  EXPECT_GT(area(box), 2000);
}

TEST(DbPostprocess, PolygonsFollowABend) {
  cv::Mat map = nothing(200, 200);
  cv::ellipse(map, {100, 150}, {80, 80}, 0, 200, 340, cv::Scalar(0.9), 16);
  const auto polygons = db_postprocess(map, std::nullopt, poly());
  const auto quads = db_postprocess(map, std::nullopt, {});
  ASSERT_EQ(polygons.size(), 1U);
  ASSERT_EQ(quads.size(), 1U);
  EXPECT_GT(polygons[0].polygon.size(), 4U);
  EXPECT_LT(area(polygons[0].polygon), 0.8 * area(quads[0].polygon));
}

TEST(DbPostprocess, APolygonNeedsFourCorners) {
  cv::Mat map = nothing();
  cv::fillConvexPoly(map, std::vector<cv::Point>{{10, 10}, {110, 10}, {10, 90}}, cv::Scalar(0.9));
  EXPECT_TRUE(db_postprocess(map, std::nullopt, poly()).empty());
}

TEST(DbPostprocess, OfNothingIsNothing) {
  EXPECT_TRUE(db_postprocess(nothing(), std::nullopt, {}).empty());
  EXPECT_THROW(db_postprocess(cv::Mat(4, 4, CV_8U), std::nullopt, {}), Error);
}

}  // namespace
}  // namespace lockstep::ocr
