#include "lockstep/ocr/transforms/normalize.h"

#include <cstring>

#include "tests/data/errors.h"
#include "tests/ocr/transforms/pictures.h"

namespace lockstep::ocr {
namespace {

using testing::error_of;

float formula(uint8_t value, size_t channel) {
  return (static_cast<float>(value) - static_cast<float>(kImageNetMean.at(channel))) /
         static_cast<float>(kImageNetStd.at(channel));
}

TEST(Normalize, IsTheFormulaPerChannelBitForBit) {
  Sample sample;
  sample.image = gradient(20, 30);
  const cv::Mat pixels = sample.image;
  normalize_image({}, sample);
  ASSERT_EQ(sample.image.type(), CV_32FC3);
  for (int y = 0; y < 20; ++y) {
    for (int x = 0; x < 30; ++x) {
      for (int c = 0; c < 3; ++c) {
        ASSERT_EQ(sample.image.at<cv::Vec3f>(y, x)[c],
                  formula(pixels.at<cv::Vec3b>(y, x)[c], static_cast<size_t>(c)));
      }
    }
  }
}

TEST(Normalize, EveryValueIsDividedBitForBit) {
  cv::Mat values(1, 256, CV_8UC3);
  for (int x = 0; x < 256; ++x)
    values.at<cv::Vec3b>(0, x) = cv::Vec3b::all(static_cast<uint8_t>(x));
  cv::RNG random(3);
  for (int round = 0; round < 500; ++round) {
    NormalizeImage options{{127, 0, 0.5}, {127, 255, 0.5}};
    if (round > 0) {
      for (double& mean : options.mean) mean = random.uniform(0.0, 255.0);
      for (double& std : options.std) std = random.uniform(0.01, 255.0);
    }
    Sample sample;
    sample.image = values;
    normalize_to_planar(options, sample);
    for (int c = 0; c < 3; ++c) {
      const auto at = static_cast<size_t>(c);
      const auto mean = static_cast<float>(options.mean.at(at)),
                 std = static_cast<float>(options.std.at(at));
      for (int x = 0; x < 256; ++x) {
        ASSERT_EQ(sample.image.at<float>(c, 0, x), (static_cast<float>(x) - mean) / std)
            << x << " " << mean << " " << std;
      }
    }
  }
}

TEST(Normalize, InOneGoAsInTwoSteps) {
  for (const bool swap : {false, true}) {
    Sample one, two;
    one.image = two.image = gradient(20, 30);
    const NormalizeImage options{.swap_channels = swap};
    normalize_to_planar(options, one);
    normalize_image(options, two);
    EXPECT_FALSE(two.planar);
    to_planar(two);
    EXPECT_TRUE(one.planar && two.planar);
    ASSERT_EQ(one.image.dims, 3);
    ASSERT_EQ(std::memcmp(one.image.data, two.image.data, sizeof(float) * 3 * 20 * 30), 0);
    EXPECT_EQ(one.image.at<float>(0, 19, 29),
              formula(gradient(20, 30).at<cv::Vec3b>(19, 29)[swap ? 2 : 0], 0));
  }
}

TEST(Normalize, TakesFloatsAndGrey) {
  Sample grey, floats;
  grey.image = cv::Mat(4, 5, CV_8U, cv::Scalar(200));
  normalize_to_planar({}, grey);
  EXPECT_EQ(grey.image.size[0], 1);
  EXPECT_EQ(grey.image.at<float>(0, 3, 4), formula(200, 0));
  floats.image = cv::Mat(4, 5, CV_32FC3, cv::Scalar(1, 2, 200));
  normalize_to_planar({}, floats);
  EXPECT_EQ(floats.image.at<float>(2, 3, 4), formula(200, 2));
  error_of(ErrorCode::kInvalidArgument, [&] { to_planar(floats); });
  error_of(ErrorCode::kInvalidArgument, [&] { normalize_image({}, floats); });
}

}  // namespace
}  // namespace lockstep::ocr
