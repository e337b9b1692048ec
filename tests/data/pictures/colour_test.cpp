#include "lockstep/data/pictures/colour.h"

#include <algorithm>

#include "tests/data/pictures/drawn.h"
#include "tests/data/pictures/reference.h"

namespace lockstep {
namespace {

using Bytes = std::vector<int>;

// The expected bytes are those of Pillow 11.3: of the picture 4 x 2 as in resample_test.cpp, after
// ImageEnhance.Brightness(p).enhance(0.6) and so on. For the hue, as in torchvision:
//   h, s, v = p.convert("HSV").split()
//   h = Image.fromarray(((np.asarray(h).astype(int) + int(turns * 255)) % 256).astype("uint8"))
//   Image.merge("HSV", (h, s, v)).convert("RGB")

TEST(Colour, BrightnessIsPillows) {
  EXPECT_EQ(bytes_of(with_brightness(drawn_picture(4, 2), 0.6)),
            (Bytes{0,  49, 99,  22, 72,  121, 44, 94,  144, 66,  116, 12,
                   35, 85, 135, 61, 111, 7,   88, 138, 34,  114, 10,  60}));
  EXPECT_EQ(bytes_of(with_brightness(drawn_picture(4, 2), 1.7)),
            (Bytes{0,   141, 255, 62,  204, 255, 125, 255, 255, 188, 255, 35,
                   100, 241, 255, 175, 255, 22,  249, 255, 96,  255, 30,  171}));
}

TEST(Colour, ContrastIsPillows) {
  EXPECT_EQ(bytes_of(with_contrast(drawn_picture(4, 2), 0.4)),
            (Bytes{75, 108, 141, 89,  123, 156, 104, 137, 171, 119, 152, 83,
                   98, 131, 165, 116, 149, 80,  133, 167, 97,  151, 82,  115}));
  EXPECT_EQ(bytes_of(with_contrast(drawn_picture(4, 2), 1.5)),
            (Bytes{0,  62,  186, 0,  117, 242, 48,  173, 255, 104, 228, 0,
                   26, 150, 255, 92, 216, 0,   158, 255, 23,  224, 0,   89}));
}

TEST(Colour, SaturationIsPillows) {
  EXPECT_EQ(bytes_of(with_saturation(drawn_picture(4, 2), 0.3)),
            (Bytes{47,  72,  97,  84,  109, 134, 121, 146, 171, 137, 162, 110,
                   106, 131, 156, 129, 154, 102, 173, 198, 146, 112, 60,  85}));
  EXPECT_EQ(bytes_of(with_saturation(drawn_picture(4, 2), 1.8)),
            (Bytes{0, 95,  244, 0,  132, 255, 19,  169, 255, 80,  230, 0,
                   4, 154, 255, 72, 222, 0,   116, 255, 0,   255, 0,   118}));
}

TEST(Colour, HueIsPillows) {
  EXPECT_EQ(bytes_of(with_hue_shift(drawn_picture(4, 2), 0.2)),
            (Bytes{113, 0,  166, 150, 37,  203, 187, 74,  240, 21,  194, 135,
                   172, 59, 225, 13,  186, 127, 58,  230, 171, 191, 136, 19}));
  EXPECT_EQ(bytes_of(with_hue_shift(drawn_picture(4, 2), -0.3)),
            (Bytes{51,  166, 0,  88,  203, 37, 125, 240, 74,  194, 21, 74,
                   110, 225, 59, 186, 13,  66, 230, 58,  110, 19,  67, 191}));
}

// One colour in 130 has another hue where Pillow's roundings to floats are left out. Digests of
//   y, x = np.mgrid[0:256, 0:256]
//   p = Image.fromarray(np.stack([x, y, (x * 7 + y * 19) % 256], -1).astype("uint8"))
TEST(Colour, HueIsPillowsOfManyColours) {
  cv::Mat picture(256, 256, CV_8UC3);
  for (int y = 0; y < 256; ++y) {
    for (int x = 0; x < 256; ++x) {
      picture.at<cv::Vec3b>(y, x) = cv::Vec3b(static_cast<uint8_t>(x), static_cast<uint8_t>(y),
                                              static_cast<uint8_t>((x * 7 + y * 19) % 256));
    }
  }
  EXPECT_EQ(digest_of(with_hue_shift(picture, 0.2)), 0xa8e3d905c65e807f);
  EXPECT_EQ(digest_of(with_hue_shift(picture, -0.3)), 0x439a86ba5ad0f7bc);
}

TEST(Colour, NothingChangesWithoutARange) {
  Philox random(1, 0, 0);
  StreamNumbers numbers(random);
  EXPECT_EQ(bytes_of(jittered({}, numbers, drawn_picture(6, 5))), bytes_of(drawn_picture(6, 5)));
}

TEST(Colour, JitterDrawsItsOrderAndThenItsFactors) {
  const ColorJitter jitter{{0.5, 1.5}, {1, 1}, {0.2, 0.2}, {0, 0}};
  std::vector<bool> brightness_first;
  for (uint64_t index = 0; index < 20; ++index) {
    Philox random(3, 0, index);
    StreamNumbers numbers(random);
    const auto out = bytes_of(jittered(jitter, numbers, drawn_picture(6, 5)));
    Philox again(3, 0, index);
    int order[] = {0, 1, 2, 3};
    for (uint32_t left = 4; left > 1; --left) std::swap(order[left - 1], order[again.below(left)]);
    const double factor = 0.5 + again.uniform();  // the only one that is drawn
    const bool first = std::find(order, order + 4, 0) < std::find(order, order + 4, 2);
    cv::Mat expected = drawn_picture(6, 5);
    if (first) expected = with_brightness(expected, factor);
    expected = with_saturation(expected, 0.2);
    if (!first) expected = with_brightness(expected, factor);
    EXPECT_EQ(out, bytes_of(expected)) << index;
    brightness_first.push_back(first);
  }
  EXPECT_NE(std::count(brightness_first.begin(), brightness_first.end(), true), 0);
  EXPECT_NE(std::count(brightness_first.begin(), brightness_first.end(), true), 20);
}

}  // namespace
}  // namespace lockstep
