#include "lockstep/ocr/metrics/det_metric.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep::ocr {
namespace {

Polygon box(float x, float y, float width, float height) {
  return {{x, y}, {x + width, y}, {x + width, y + height}, {x, y + height}};
}

TextRegion text(const Polygon& polygon) {
  return {.polygon = polygon, .text = "word"};
}
TextRegion ignored(const Polygon& polygon) {
  return {.polygon = polygon, .text = "###", .ignored = true};
}

std::array<double, 3> counts(const std::vector<Polygon>& found,
                             const std::vector<TextRegion>& truth, bool one_to_one = false) {
  return det_counts(found, truth, {.one_to_one = one_to_one}).flat();
}

using Flat = std::array<double, 3>;  // matched, missed, wrong

TEST(DetMetric, MatchedMissedAndWrong) {
  EXPECT_EQ(counts({box(0, 0, 40, 10), box(200, 0, 40, 10)},
                   {text(box(2, 0, 40, 10)), text(box(100, 100, 30, 10))}),
            (Flat{1, 1, 1}));
}

TEST(DetMetric, ExactlyHalfIsNoMatch) {
  EXPECT_EQ(counts({box(0, 0, 10, 5)}, {text(box(0, 0, 10, 10))}), (Flat{0, 1, 1}));
  EXPECT_EQ(counts({box(0, 0, 10, 5.01F)}, {text(box(0, 0, 10, 10))}), (Flat{1, 0, 0}));
}

TEST(DetMetric, OneGroundTruthAbsorbsSeveralDetections) {
  const std::vector<Polygon> twice = {box(0, 0, 40, 10), box(1, 0, 40, 10)};
  EXPECT_EQ(counts(twice, {text(box(0, 0, 40, 10))}), (Flat{1, 0, 0}));
  EXPECT_EQ(counts(twice, {text(box(0, 0, 40, 10))}, true), (Flat{1, 0, 1}));
}

TEST(DetMetric, TheFirstGroundTruthThatFitsIsTakenNotTheBest) {
  const std::vector<TextRegion> truth = {text(box(4, 0, 20, 10)), text(box(0, 0, 20, 10))};
  const std::vector<Polygon> same = {box(0, 0, 20, 10), box(0, 0, 20, 10)};
  EXPECT_EQ(counts(same, truth), (Flat{1, 1, 0}));
  EXPECT_EQ(counts(same, truth, true), (Flat{2, 0, 0}));
}

TEST(DetMetric, DetectionsOfIgnoredTextDoNotCount) {
  const std::vector<TextRegion> truth = {ignored(box(0, 0, 20, 10))};
  EXPECT_EQ(counts({box(0, 0, 10, 10)}, truth), (Flat{0, 0, 0}));
  EXPECT_EQ(counts({box(10, 0, 20, 10)}, truth), (Flat{0, 0, 1}));  // half of it: counts
  EXPECT_EQ(counts({box(9.9F, 0, 20, 10)}, truth), (Flat{0, 0, 0}));
}

TEST(DetMetric, HalvesInTwoIgnoredRegionsDoNotAddUp) {
  EXPECT_EQ(counts({box(5, 0, 10, 10)}, {ignored(box(0, 0, 10, 10)), ignored(box(10, 0, 10, 10))}),
            (Flat{0, 0, 1}));
}

TEST(DetMetric, InvalidPolygonsOfBothSidesDoNotCount) {
  const Polygon crossing = {{0, 0}, {20, 10}, {20, 0}, {0, 10}};
  const Polygon line = {{0, 0}, {20, 0}, {10, 0}, {5, 0}};
  EXPECT_EQ(counts({crossing, line}, {text(box(0, 0, 20, 10))}), (Flat{0, 1, 0}));
  EXPECT_EQ(counts({box(0, 0, 20, 10)}, {text(crossing), ignored(crossing)}), (Flat{0, 0, 1}));
}

TEST(DetMetric, NothingOnEitherSide) {
  EXPECT_EQ(counts({}, {}), (Flat{0, 0, 0}));
  EXPECT_EQ(counts({}, {text(box(0, 0, 20, 10))}), (Flat{0, 1, 0}));
  EXPECT_EQ(counts({box(0, 0, 20, 10)}, {}, true), (Flat{0, 0, 1}));
}

TEST(DetMetric, CountsOfImagesAddUpAsFlatNumbersToo) {
  DetCounts all{.matched = 3, .missed = 1, .wrong = 2};
  all += DetCounts::from(std::array<double, 3>{1, 0, 4});
  EXPECT_EQ(all.flat(), (Flat{4, 1, 6}));
}

TEST(DetMetric, FiguresOfCounts) {
  const DetFigures figures = det_figures({.matched = 3, .missed = 1, .wrong = 2});
  EXPECT_DOUBLE_EQ(figures.recall, 0.75);
  EXPECT_DOUBLE_EQ(figures.precision, 0.6);
  EXPECT_DOUBLE_EQ(figures.f_score, 2 * 0.75 * 0.6 / 1.35);
  EXPECT_EQ(det_figures({}).f_score, 0);
  EXPECT_EQ(det_figures({.wrong = 3}).precision, 0);
}

}  // namespace
}  // namespace lockstep::ocr
