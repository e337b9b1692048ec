#include "lockstep/ocr/predict/result_lines.h"

#include <gtest/gtest.h>

namespace lockstep::ocr {
namespace {

const Polygon kQuad = {{10, 20}, {50, 21}, {50, 40.9F}, {10, 39}};

TEST(ResultLines, OfDetection) {
  const std::vector<Polygon> two = {kQuad, {{1, 2}, {3, 4}, {5, 9}}};
  EXPECT_EQ(detection_line("img_1.jpg", two),
            "img_1.jpg\t[[[10, 20], [50, 21], [50, 40], [10, 39]], [[1, 2], [3, 4], [5, 9]]]");
  EXPECT_EQ(detection_line("img_1.jpg", {}), "img_1.jpg\t[]");
}

TEST(ResultLines, OfRecognition) {
  EXPECT_EQ(recognition_line("word_1.png", "Genaxis Theatre"), "word_1.png\tGenaxis Theatre");
  EXPECT_EQ(recognition_line("a\nb\tc.png", "Theatre"), "a?b?c.png\tTheatre");
}

TEST(ResultLines, OfBothAreThoseOfALabelFile) {
  const std::vector<ReadRegion> two = {{kQuad, "say \"中\\\""}, {kQuad, "x"}};
  EXPECT_EQ(system_line("a.png", two),
            "a.png\t[{\"transcription\": \"say \\\"中\\\\\\\"\", \"points\": "
            "[[10, 20], [50, 21], [50, 40], [10, 39]]}, {\"transcription\": \"x\", \"points\": "
            "[[10, 20], [50, 21], [50, 40], [10, 39]]}]");
  EXPECT_EQ(system_line("a.png", {}), "a.png\t[]");
}

TEST(CheckedRegions, StayInsideThePicture) {
  const std::vector<DetectedRegion> found = {{{{-5, -1}, {300, -1}, {300, 20}, {-5, 20}}, 0.9F}};
  EXPECT_EQ(checked_regions(found, {200, 100}),
            (std::vector<Polygon>{{{0, 0}, {199, 0}, {199, 20}, {0, 20}}}));
}

TEST(CheckedRegions, StartAtTheCornerOfTheLeastSum) {
  const std::vector<DetectedRegion> found = {{{{50, 21}, {50, 40}, {10, 39}, {10, 20}}, 0.9F}};
  EXPECT_EQ(checked_regions(found, {200, 100}),
            (std::vector<Polygon>{{{10, 20}, {50, 21}, {50, 40}, {10, 39}}}));
}

TEST(CheckedRegions, WithoutTheSmallAndTheInvalid) {
  const std::vector<DetectedRegion> found = {
      {{{0, 0}, {1, 0}, {1, 2}, {0, 2}}, 0.9F},                          // 2 square pixels
      {{{0, 0}, {3, 0}, {3, 1}, {0, 1}}, 0.9F},                          // 3
      {{{250, 10}, {260, 10}, {260, 20}, {250, 20}}, 0.9F},              // outside: a line remains
      {{{0, 0}, {40, 40}, {40, 0}, {20, 5}, {10, 50}, {0, 40}}, 0.9F}};  // crosses itself
  EXPECT_EQ(checked_regions(found, {200, 100}),
            (std::vector<Polygon>{{{0, 0}, {3, 0}, {3, 1}, {0, 1}}}));
}

TEST(CheckedRegions, OfOtherThanFourCornersKeepTheirOrder) {
  const Polygon five = {{50, 20}, {60, 30}, {50, 40}, {10, 40}, {10, 20}};
  const std::vector<DetectedRegion> found = {{five, 0.9F}};
  EXPECT_EQ(checked_regions(found, {200, 100}), (std::vector<Polygon>{five}));
}

}  // namespace
}  // namespace lockstep::ocr
