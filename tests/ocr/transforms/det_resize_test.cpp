#include "lockstep/ocr/transforms/det_resize.h"

#include "tests/data/errors.h"
#include "tests/ocr/transforms/pictures.h"

namespace lockstep::ocr {
namespace {

using testing::error_of;
using Limit = DetResize::Limit;

cv::Size size_of(const DetResize& options, int rows, int cols) {
  return resized_size(options, cv::Size(cols, rows));
}

cv::Size rows_cols(int rows, int cols) {
  return {cols, rows};
}

TEST(DetResize, LimitsTheShortSideFromBelow) {
  EXPECT_EQ(size_of({}, 720, 1280), rows_cols(736, 1312));  // 1308 / 32 = 40.9
  EXPECT_EQ(size_of({}, 1000, 2000),
            rows_cols(992, 1984));  // never smaller; 31.25, then 62.5 to even
  EXPECT_EQ(size_of({.limit_side_len = 48}, 48, 80), rows_cols(64, 64));  // 1.5 and 2.5: to even
}

TEST(DetResize, LimitsTheLongSideFromAbove) {
  const DetResize options{.limit_type = Limit::kMax, .limit_side_len = 960};
  EXPECT_EQ(size_of(options, 720, 1280), rows_cols(544, 960));  // 540 / 32 = 16.9
  EXPECT_EQ(size_of(options, 500, 700), rows_cols(512, 704));   // never larger
  EXPECT_EQ(size_of(options, 5, 2000), rows_cols(32, 960));
}

// MindOCR 0.1's ScalePadImage: min(target / size), np.round, one scale for polygons and both sides.
TEST(DetResize, ExactlyIntoATargetWithOneScale) {
  const DetResize options{.target_size = {{736, 736}},
                          .padding = true,
                          .exact = true,
                          .limit_type = Limit::kNone,
                          .force_divisable = false};
  EXPECT_EQ(size_of(options, 721, 1280), rows_cols(415, 736));  // 414.575
  EXPECT_EQ(size_of(options, 368, 5), rows_cols(736, 10));
  EXPECT_EQ(size_of(options, 1472, 5), rows_cols(736, 2));  // 2.5: to even
  Sample sample;
  sample.image = cv::Mat(721, 1280, CV_8UC3, cv::Scalar(9, 9, 9));
  sample.regions.resize(1);
  sample.regions[0].polygon = {{0, 0}, {1280, 0}, {1280, 721}, {0, 721}};
  det_resize(options, /*training=*/true, sample);
  EXPECT_EQ(sample.image.size(), rows_cols(736, 736));
  EXPECT_EQ(sample.image.at<cv::Vec3b>(414, 735), cv::Vec3b(9, 9, 9));
  EXPECT_EQ(sample.image.at<cv::Vec3b>(415, 0), cv::Vec3b(0, 0, 0));
  EXPECT_FLOAT_EQ(sample.resize->scale_height, 0.575F);
  EXPECT_FLOAT_EQ(sample.resize->scale_width, 0.575F);
  EXPECT_FLOAT_EQ(sample.regions[0].polygon[2].y, 721 * 0.575F);
}

TEST(DetResize, GoesToATargetOrIntoIt) {
  EXPECT_EQ(size_of({.target_size = {{736, 1280}}, .keep_ratio = false}, 100, 77),
            rows_cols(736, 1280));
  EXPECT_EQ(size_of({.target_size = {{730, 1270}}, .keep_ratio = false}, 100, 77),
            rows_cols(736, 1280));  // 22.8, 39.7 times 32
  EXPECT_EQ(size_of({.target_size = {{730, 1270}}, .keep_ratio = false, .force_divisable = false},
                    100, 77),
            rows_cols(730, 1270));
  EXPECT_EQ(size_of({.target_size = {{1152, 2048}}, .padding = true}, 600, 800),
            rows_cols(1152, 1536));
  EXPECT_EQ(size_of({.limit_type = Limit::kNone}, 65, 64), rows_cols(96, 64));
}

TEST(DetResize, PadsAndTellsTheScale) {
  Sample sample;
  sample.image = gradient(60, 80);
  sample.raw_size = {800, 600};
  sample.regions = {{rectangle(10, 20, 30, 40), "a"}};
  det_resize({.target_size = {{128, 256}}, .padding = true}, false, sample);
  EXPECT_EQ(sample.image.size(), cv::Size(256, 128));
  // min(128 / 60, 256 / 80) = 2.13; 80 * 2.13 = 170, rounded to 160 (5.3 * 32)
  EXPECT_NE(sample.image.at<cv::Vec3b>(127, 159), cv::Vec3b(0, 0, 0));
  EXPECT_EQ(sample.image.at<cv::Vec3b>(64, 160), cv::Vec3b(0, 0, 0));
  ASSERT_TRUE(sample.resize);
  EXPECT_EQ(sample.resize->src_height, 600);
  EXPECT_EQ(sample.resize->src_width, 800);
  EXPECT_FLOAT_EQ(sample.resize->scale_height, 128.0F / 60);
  EXPECT_FLOAT_EQ(sample.resize->scale_width, 2);
  EXPECT_EQ(sample.regions[0].polygon, rectangle(10, 20, 30, 40));  // evaluation
}

TEST(DetResize, MovesPolygonsInTrainingAndASecondOneScalesByHeight) {
  Sample sample;
  sample.image = gradient(64, 96);
  sample.regions = {{rectangle(10, 20, 30, 40), "a"}};
  const DetResize first{.target_size = {{128, 96}}, .keep_ratio = false};
  const DetResize second{.target_size = {{128, 192}}, .keep_ratio = false};
  det_resize(first, true, sample);
  EXPECT_EQ(sample.regions[0].polygon, rectangle(10, 40, 30, 80));
  det_resize(second, true, sample);
  EXPECT_EQ(sample.regions[0].polygon, rectangle(20, 40, 60, 80));
  EXPECT_EQ(sample.resize->scale_height, 2);
  EXPECT_EQ(sample.resize->scale_width, 1);  // by the second's vertical 1, not its 2
}

TEST(DetResize, RefusesWhatNoMemoryHolds) {
  Sample sample;
  sample.image = gradient(1, 4000);
  error_of(ErrorCode::kInvalidArgument,
           [&] { det_resize({.limit_side_len = 100'000}, true, sample); });
}

}  // namespace
}  // namespace lockstep::ocr
