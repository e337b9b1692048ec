#include "lockstep/data/pictures/colour.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace lockstep::inline internal {
namespace {

using Pixel = cv::Vec3b;

/// A copy of `picture` in which `change(pixel)` was called for each pixel.
template <typename Change>
cv::Mat changed(const cv::Mat& picture, const Change& change) {
  cv::Mat out = picture.clone();
  for (int y = 0; y < out.rows; ++y) {
    Pixel* row = out.ptr<Pixel>(y);
    std::for_each(row, row + out.cols, change);
  }
  return out;
}

/// ITU-R BT.601's weights in 16 bits.
int grey_of(const Pixel& pixel) {
  return (pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >> 16;
}

uint8_t byte_of(double value) {
  return static_cast<uint8_t>(std::clamp(value, 0.0, 255.0));
}

struct Hsv {
  uint8_t hue = 0;
  uint8_t saturation = 0;
  uint8_t value = 0;
};

Hsv to_hsv(const Pixel& pixel) {
  const int most = std::max({pixel[0], pixel[1], pixel[2]});
  const int least = std::min({pixel[0], pixel[1], pixel[2]});
  if (most == least) return {0, 0, static_cast<uint8_t>(most)};
  const auto spread = static_cast<float>(most - least);
  const auto below = [&](int channel) {
    return static_cast<float>(most - pixel[channel]) / spread;
  };
  const float red = below(0), green = below(1), blue = below(2);
  // Sums of doubles and two results of floats, as Pillow has it: else one of 130 colours differs.
  const double sum = pixel[0] == most   ? blue - green
                     : pixel[1] == most ? 2.0 + red - blue
                                        : 4.0 + green - red;
  const auto sixths = static_cast<float>(sum);
  const auto hue = static_cast<float>(std::fmod(sixths / 6.0 + 1.0, 1.0));
  return {byte_of(hue * 255.0), byte_of(spread / static_cast<float>(most) * 255.0),
          static_cast<uint8_t>(most)};
}

Pixel to_rgb(const Hsv& hsv) {
  const uint8_t v = hsv.value;
  if (hsv.saturation == 0) return {v, v, v};
  const double place = hsv.hue * 6.0 / 255.0;
  const auto sixth = static_cast<int>(std::floor(place));
  const double part = place - sixth;
  const double saturation = hsv.saturation / 255.0;
  const auto scaled = [&](double less) { return byte_of(std::round(v * (1.0 - less))); };
  const uint8_t p = scaled(saturation);
  const uint8_t q = scaled(saturation * part);
  const uint8_t t = scaled(saturation * (1.0 - part));
  switch (sixth % 6) {
    case 0:
      return {v, t, p};
    case 1:
      return {q, v, p};
    case 2:
      return {p, v, t};
    case 3:
      return {p, q, v};
    case 4:
      return {t, p, v};
    default:
      return {v, p, q};
  }
}

double drawn(const std::pair<double, double>& range, RandomNumbers& random) {
  if (range.first == range.second) return range.first;
  return range.first + (range.second - range.first) * random.uniform();
}

}  // namespace

uint8_t blended(int none, int full, float factor) {
  const float value = static_cast<float>(none) + factor * static_cast<float>(full - none);
  return static_cast<uint8_t>(std::clamp(value, 0.0F, 255.0F));
}

cv::Mat with_brightness(const cv::Mat& picture, double factor) {
  const auto share = static_cast<float>(factor);
  return changed(picture, [&](Pixel& pixel) {
    for (int c = 0; c < 3; ++c) pixel[c] = blended(0, pixel[c], share);
  });
}

cv::Mat with_contrast(const cv::Mat& picture, double factor) {
  int64_t sum = 0;
  for (int y = 0; y < picture.rows; ++y) {
    const Pixel* row = picture.ptr<Pixel>(y);
    for (int x = 0; x < picture.cols; ++x) sum += grey_of(row[x]);
  }
  const double mean = static_cast<double>(sum) / static_cast<double>(picture.total());
  const auto middle = static_cast<int>(std::floor(mean + 0.5));
  const auto share = static_cast<float>(factor);
  return changed(picture, [&](Pixel& pixel) {
    for (int c = 0; c < 3; ++c) pixel[c] = blended(middle, pixel[c], share);
  });
}

cv::Mat with_saturation(const cv::Mat& picture, double factor) {
  const auto share = static_cast<float>(factor);
  return changed(picture, [&](Pixel& pixel) {
    const int grey = grey_of(pixel);
    for (int c = 0; c < 3; ++c) pixel[c] = blended(grey, pixel[c], share);
  });
}

cv::Mat with_hue_shift(const cv::Mat& picture, double turns) {
  const auto shift = static_cast<uint8_t>(static_cast<int>(turns * 255));  // it wraps around
  return changed(picture, [&](Pixel& pixel) {
    Hsv hsv = to_hsv(pixel);
    hsv.hue = static_cast<uint8_t>(hsv.hue + shift);
    pixel = to_rgb(hsv);
  });
}

cv::Mat jittered(const ColorJitter& jitter, RandomNumbers& random, const cv::Mat& picture) {
  std::array<int, 4> order = {0, 1, 2, 3};
  for (uint32_t left = 4; left > 1; --left) {
    std::swap(order[left - 1], order[static_cast<size_t>(random.below(left))]);
  }
  struct Change {
    cv::Mat (*apply)(const cv::Mat& picture, double factor);
    std::pair<double, double> range;
    double none;
  };
  const std::array<Change, 4> changes = {{{with_brightness, jitter.brightness, 1},
                                          {with_contrast, jitter.contrast, 1},
                                          {with_saturation, jitter.saturation, 1},
                                          {with_hue_shift, jitter.hue, 0}}};
  cv::Mat out = picture;
  for (const int which : order) {
    const Change& change = changes[static_cast<size_t>(which)];
    if (change.range == std::pair(change.none, change.none)) continue;
    out = change.apply(out, drawn(change.range, random));
  }
  return out;
}

}  // namespace lockstep::inline internal
