#include "lockstep/ocr/transforms/rec_image.h"

#include <gtest/gtest.h>

#include <cstring>

#include "lockstep/ocr/transforms/normalize.h"
#include "tests/ocr/transforms/pictures.h"

namespace lockstep::ocr {
namespace {

Sample word(int rows, int cols) {
  Sample sample;
  sample.image = cv::Mat(rows, cols, CV_8UC3, cv::Scalar(10, 127, 254));
  return sample;
}

TEST(RecResize, FollowsTheProportionsWithPadding) {
  Sample sample = word(20, 31);
  rec_resize({.image_shape = {32, 100}}, sample);
  EXPECT_EQ(sample.image.size(), cv::Size(100, 32));
  EXPECT_FLOAT_EQ(sample.valid_ratio, 0.5);  // ceil(32 * 31 / 20) = ceil(49.6) = 50
  EXPECT_EQ(sample.image.at<cv::Vec3b>(31, 49), cv::Vec3b(10, 127, 254));
  EXPECT_EQ(sample.image.at<cv::Vec3b>(0, 50), cv::Vec3b(0, 0, 0));
}

TEST(RecResize, FillsTheWidthWithoutPaddingAndWhenLong) {
  Sample plain = word(20, 31), longer = word(10, 300);
  rec_resize({.padding = false}, plain);
  EXPECT_EQ(plain.image.at<cv::Vec3b>(0, 99), cv::Vec3b(10, 127, 254));
  EXPECT_EQ(plain.valid_ratio, 1);
  rec_resize({}, longer);
  EXPECT_EQ(longer.image.size(), cv::Size(100, 32));
  EXPECT_EQ(longer.valid_ratio, 1);
}

TEST(RecResizeToPlanar, MakesWhatBothStepsMake) {
  const NormalizeImage norm{{127, 100, 90}, {127, 60, 50}, true};
  for (const bool padding : {false, true}) {
    for (const auto& image : {gradient(20, 31), gradient(64, 200), gradient(40, 500)}) {
      Sample one, two;
      one.image = two.image = image;
      const RecResizeImg options{.padding = padding};
      rec_resize_to_planar(options, norm, one);
      rec_resize(options, two);
      normalize_to_planar(norm, two);
      EXPECT_TRUE(one.planar);
      EXPECT_EQ(one.valid_ratio, two.valid_ratio);
      ASSERT_TRUE(one.image.dims == 3 && one.image.size == two.image.size);
      EXPECT_EQ(std::memcmp(one.image.data, two.image.data, sizeof(float) * 3 * 32 * 100), 0);
    }
  }
}

TEST(RecResizeInOrder, MakesWhatBothStepsMake) {
  for (const bool swaps : {false, true}) {
    const NormalizeImage norm{.swap_channels = swaps, .left_out = true};
    for (const bool padding : {false, true}) {
      for (const auto& image : {gradient(20, 31), gradient(64, 200), gradient(40, 500)}) {
        Sample one, two;
        one.image = two.image = image;
        const RecResizeImg options{.padding = padding};
        rec_resize_in_order(options, norm, one);
        rec_resize(options, two);
        normalize_image(norm, two);
        EXPECT_EQ(one.valid_ratio, two.valid_ratio);
        ASSERT_TRUE(one.image.type() == CV_8UC3 && one.image.size() == cv::Size(100, 32));
        EXPECT_EQ(cv::norm(one.image, two.image, cv::NORM_INF), 0);
      }
    }
  }
}

TEST(RecResizeToPlanar, TakesGrey) {
  Sample grey;
  grey.image = cv::Mat(20, 30, CV_8U, cv::Scalar(254));
  rec_resize_to_planar({.padding = false}, {{127, 0, 0}, {127, 1, 1}}, grey);
  EXPECT_EQ(grey.image.size[0], 1);
  EXPECT_EQ(grey.image.at<float>(0, 31, 99), 1);
}

TEST(RecResizeNormalize, PadsBlackBeforeNormalising) {
  Sample sample = word(16, 25);
  rec_resize_normalize({.target_height = 32, .target_width = 100, .padding = true}, sample);
  ASSERT_EQ(sample.image.size(), cv::Size(100, 32));
  EXPECT_EQ(sample.image.at<cv::Vec3f>(3, 49), cv::Vec3f((10 - 127) / 127.0F, 0, 1));
  EXPECT_EQ(sample.image.at<cv::Vec3f>(3, 50), cv::Vec3f(-1, -1, -1));
  EXPECT_EQ(sample.resize->src_width, 25);
  EXPECT_EQ(sample.resize->scale_width, 2);
}

TEST(RecResizeNormalize, OrPadsZerosAfterAndDivides) {
  Sample sample = word(16, 25);
  rec_resize_normalize({.target_width = 100,
                        .padding = true,
                        .norm_before_pad = true,
                        .mean = {0.5, 0.5, 0.5},
                        .std = {0.5, 0.5, 0.5},
                        .divisor = 254},
                       sample);
  EXPECT_NEAR(sample.image.at<cv::Vec3f>(3, 49)[1], 0, 1e-6);
  EXPECT_NEAR(sample.image.at<cv::Vec3f>(3, 49)[2], 1, 1e-6);
  EXPECT_EQ(sample.image.at<cv::Vec3f>(3, 50), cv::Vec3f(0, 0, 0));
}

TEST(RecResizeNormalize, WidthWithoutPadding) {
  Sample kept = word(16, 25), long_one = word(10, 200), stretched = word(16, 25);
  rec_resize_normalize({}, kept);
  EXPECT_EQ(kept.image.size(), cv::Size(50, 32));
  rec_resize_normalize({}, long_one);
  EXPECT_EQ(long_one.image.size(), cv::Size(320, 32));
  rec_resize_normalize({.target_width = 100, .keep_ratio = false}, stretched);
  EXPECT_EQ(stretched.image.size(), cv::Size(100, 32));
}

TEST(Rotate90IfVertical, TurnsWhatIsAboveTheThreshold) {
  Sample upright;
  upright.image = gradient(31, 20);
  const cv::Mat before = upright.image;
  rotate_if_vertical({}, upright);
  ASSERT_EQ(upright.image.size(), cv::Size(31, 20));
  EXPECT_EQ(upright.image.at<cv::Vec3b>(19, 0), before.at<cv::Vec3b>(0, 0));  // counterclockwise
  upright.image = before;
  rotate_if_vertical({.counterclockwise = false}, upright);
  EXPECT_EQ(upright.image.at<cv::Vec3b>(0, 30), before.at<cv::Vec3b>(0, 0));
  Sample flat;
  flat.image = gradient(30, 20);
  rotate_if_vertical({}, flat);
  EXPECT_EQ(flat.image.size(), cv::Size(20, 30));
}

}  // namespace
}  // namespace lockstep::ocr
