#include "lockstep/ocr/transforms/crop.h"

#include <gtest/gtest.h>

#include "tests/ocr/transforms/pictures.h"

namespace lockstep::ocr {
namespace {

std::vector<TextRegion> two_words() {
  return {{rectangle(20, 30, 60, 50), "a"},
          {rectangle(100, 80, 160, 100), "b"},
          {rectangle(0, 0, 199, 119), "###", true}};
}

TEST(FreeLines, AreThoseThatNoLegibleRegionTouches) {
  const std::vector<TextRegion> regions = {{rectangle(1.6F, 0, 3.4F, 1), "a"},
                                           {rectangle(-5, 0, -2, 1), "left of the image"},
                                           {rectangle(8, 0, 20, 1), "over the edge"},
                                           {rectangle(5, 0, 6, 1), "###", true}};
  EXPECT_EQ(free_lines(regions, 0, 10), (std::vector<int>{1, 4, 5, 6, 7}));
  // Halves are rounded to the even line: 2.5 to 2, 3.5 to 4.
  EXPECT_EQ(free_lines({{rectangle(2.5F, 0, 3.5F, 1), "a"}}, 0, 7), (std::vector<int>{0, 1, 5, 6}));
}

TEST(FindCrop, CrossesNoLegibleRegionAndHasOne) {
  const RandomCropWithBBox options{.max_tries = 100};
  int found = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    Philox draws(1, 0, i);
    const auto crop = find_crop(options, two_words(), {200, 120}, draws);
    if (!crop) continue;
    ++found;
    EXPECT_GE(crop->width, 20);
    EXPECT_GE(crop->height, 12);
    int inside = 0;
    for (const cv::Rect word : {cv::Rect(20, 30, 40, 20), cv::Rect(100, 80, 60, 20)}) {
      const cv::Rect common = word & *crop;
      EXPECT_TRUE(common.empty() || common == word) << *crop;
      inside += common.empty() ? 0 : 1;
    }
    EXPECT_GE(inside, 1);
  }
  EXPECT_GT(found, 90);
}

TEST(FindCrop, FindsNoneWhereTextCoversAnAxis) {
  Philox draws(1, 0, 0);
  EXPECT_FALSE(find_crop({}, {{rectangle(0, 10, 200, 20), "a"}}, {200, 120}, draws));
}

TEST(DrawCrop, TakesTheWholeImageByChanceAndWithoutLegibleText) {
  Philox draws(1, 0, 0);
  const cv::Rect whole(0, 0, 200, 120);
  EXPECT_EQ(draw_crop({.p = 0}, two_words(), whole.size(), draws), whole);
  EXPECT_EQ(draw_crop({.p = 1}, {{rectangle(1, 1, 9, 9), "###", true}}, whole.size(), draws),
            whole);
}

TEST(PlaceCrop, FitsTheUpperLeftOfABlackCanvas) {
  const RandomCropWithBBox options{.crop_size = {64, 100}};
  const cv::Rect part(20, 10, 50, 16);
  ASSERT_EQ(fitting_scale(options, part), 2);
  Sample sample;
  sample.regions = two_words();
  const cv::Mat fitted(32, 100, CV_8UC3, cv::Scalar(5, 6, 7));
  place_crop(options, part, 2, fitted, sample);
  EXPECT_EQ(sample.actual_size, cv::Size(100, 32));
  EXPECT_EQ(sample.image.size(), cv::Size(100, 64));
  EXPECT_EQ(sample.image.at<cv::Vec3b>(31, 99), cv::Vec3b(5, 6, 7));
  EXPECT_EQ(sample.image.at<cv::Vec3b>(32, 0), cv::Vec3b(0, 0, 0));
  EXPECT_EQ(sample.regions[0].polygon, rectangle(0, 40, 80, 80));
  EXPECT_EQ(sample.regions[1].polygon[0], cv::Point2f(160, 140));
}

}  // namespace
}  // namespace lockstep::ocr
