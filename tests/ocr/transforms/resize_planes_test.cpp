#include "lockstep/ocr/transforms/resize_planes.h"

#include <gtest/gtest.h>

#include <opencv2/imgproc.hpp>

namespace lockstep::ocr {
namespace {

void expect_as_opencv(const cv::Mat& image, cv::Size size) {
  cv::Mat resized;
  cv::resize(image, resized, size);
  std::vector<cv::Mat> expected, planes;
  cv::split(resized, expected);
  resize_to_planes(image, size, planes);
  ASSERT_EQ(planes.size(), 3U);
  for (size_t channel = 0; channel < 3; ++channel) {
    ASSERT_EQ(planes[channel].size(), size);
    ASSERT_TRUE(planes[channel].isContinuous());
    ASSERT_EQ(cv::norm(planes[channel], expected[channel], cv::NORM_INF), 0)
        << image.size() << " to " << size << ", channel " << channel;
  }
}

cv::Mat random_image(cv::RNG& random, int rows, int cols) {
  cv::Mat image(rows, cols, CV_8UC3);
  random.fill(image, cv::RNG::UNIFORM, 0, 256);
  return image;
}

TEST(ResizeToPlanes, PixelsAreThoseOfOpenCv) {
  cv::RNG random(11);
  for (int round = 0; round < 1500; ++round) {
    const cv::Mat image = random_image(random, random.uniform(1, 100), random.uniform(1, 260));
    const bool is_word = round % 3 != 0;
    expect_as_opencv(image, is_word ? cv::Size(100, 32)
                                    : cv::Size(random.uniform(1, 150), random.uniform(1, 70)));
  }
}

TEST(ResizeToPlanes, ExtremesKeepTheirValues) {
  for (const int value : {0, 255}) {
    for (int width = 2; width < 300; width += 7) {
      const cv::Mat image(width % 90 + 1, width, CV_8UC3, cv::Scalar::all(value));
      expect_as_opencv(image, {100, 32});
    }
  }
}

TEST(ResizeToPlanes, WhatOpenCvTreatsApart) {  // the same size, half of it, a single column
  cv::RNG random(12);
  for (const cv::Size size : {cv::Size(100, 32), cv::Size(200, 64), cv::Size(200, 32),
                              cv::Size(100, 64), cv::Size(1, 50), cv::Size(2, 1)}) {
    expect_as_opencv(random_image(random, size.height, size.width), {100, 32});
  }
}

TEST(ResizeToPlanes, APartOfAnImage) {
  cv::RNG random(13);
  const cv::Mat image = random_image(random, 60, 150);
  expect_as_opencv(image(cv::Rect(10, 20, 77, 35)), {100, 32});
  expect_as_opencv(image(cv::Rect(73, 25, 77, 35)), {100, 32});
}

}  // namespace
}  // namespace lockstep::ocr
