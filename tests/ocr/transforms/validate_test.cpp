#include "lockstep/ocr/transforms/crop.h"

#include <gtest/gtest.h>

#include "tests/ocr/transforms/pictures.h"

namespace lockstep::ocr {
namespace {

Sample sample_with(std::vector<TextRegion> regions) {
  Sample sample;
  sample.image = cv::Mat::zeros(100, 200, CV_8UC3);
  sample.regions = std::move(regions);
  return sample;
}

TEST(ValidatePolygons, TakesOutWhatIsNotInTheImage) {
  auto sample =
      sample_with({{rectangle(10, 10, 30, 20), "inside"},
                   {rectangle(-30, 10, -1, 20), "left"},
                   {rectangle(190, 90, 250, 150), "corner"},
                   {rectangle(199.9F, 10, 220, 20), "sliver of 1"},
                   {rectangle(199.9F, 10, 220, 19), "sliver of 0.9"},
                   {{{250, 60}, {190, 120}, {260, 120}}, "box overlaps, polygon does not"},
                   {rectangle(0, 101, 10, 120), "below"}});
  validate_polygons({}, sample);
  ASSERT_EQ(sample.regions.size(), 4U);
  EXPECT_FALSE(sample.regions[0].ignored);
  EXPECT_EQ(sample.regions[1].text, "corner");
  EXPECT_FALSE(sample.regions[1].ignored);
  EXPECT_EQ(sample.regions[1].polygon, rectangle(190, 90, 250, 150));
  EXPECT_EQ(sample.regions[2].text, "sliver of 1");
  EXPECT_FALSE(sample.regions[2].ignored);
  EXPECT_TRUE(sample.regions[3].ignored);
}

TEST(ValidatePolygons, PaddingIsNotTheImage) {
  auto sample = sample_with({{rectangle(10, 60, 30, 80), "on the padding"}});
  sample.actual_size = {200, 50};
  validate_polygons({}, sample);
  EXPECT_TRUE(sample.regions.empty());
}

TEST(ValidatePolygons, ClipsOnRequest) {
  auto sample = sample_with({{rectangle(190, 90, 250, 150), "corner"},
                             {{{195, 50}, {230, 40}, {230, 60}}, "tip"},
                             {rectangle(10, 10, 30, 20), "inside"}});
  validate_polygons({.clip_to_visible_area = true}, sample);
  ASSERT_EQ(sample.regions.size(), 3U);
  EXPECT_EQ(cv::boundingRect(sample.regions[0].polygon), cv::Rect(190, 90, 11, 11));
  EXPECT_FALSE(sample.regions[0].ignored);
  EXPECT_EQ(sample.regions[1].polygon.size(), 3U);
  EXPECT_TRUE(sample.regions[1].ignored);  // below min_vertices
  EXPECT_EQ(sample.regions[2].polygon, rectangle(10, 10, 30, 20));
}

TEST(ValidatePolygons, AnInvalidOneStaysIgnored) {
  auto sample = sample_with({{{{190, 0}, {230, 20}, {230, 0}, {190, 20}}, "crossing"}});
  validate_polygons({}, sample);
  ASSERT_EQ(sample.regions.size(), 1U);
  EXPECT_TRUE(sample.regions[0].ignored);
}

}  // namespace
}  // namespace lockstep::ocr
