#include "lockstep/data/pictures/resample.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace lockstep {
namespace {

constexpr int kChannels = 3;
constexpr int kWeightBits = 22;
constexpr int32_t kHalf = 1 << (kWeightBits - 1);

/// The input positions that an output position is the mean of, and where their weights begin.
struct Taps {
  int first = 0;
  int count = 0;
  size_t weights = 0;
};

/// The taps of each position of an axis.
struct AxisTaps {
  std::vector<Taps> places;
  std::vector<int32_t> weights;
};

AxisTaps taps_of(int input, int output) {
  const double scale = static_cast<double>(input) / output;
  const double reach = std::max(scale, 1.0);  // of the triangle, on either side
  AxisTaps axis;
  std::vector<double> exact;
  for (int i = 0; i < output; ++i) {
    const double center = (i + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(center - reach + 0.5));
    const int last = std::min(input, static_cast<int>(center + reach + 0.5));
    exact.clear();
    double sum = 0;
    for (int x = first; x < last; ++x) {
      const double distance = std::abs((x - center + 0.5) * (1.0 / reach));
      exact.push_back(distance < 1 ? 1 - distance : 0);
      sum += exact.back();
    }
    axis.places.push_back({first, last - first, axis.weights.size()});
    for (const double weight : exact) {
      const double share = sum == 0 ? weight : weight / sum;
      axis.weights.push_back(static_cast<int32_t>(share * (1 << kWeightBits) + 0.5));
    }
  }
  return axis;
}

/// No weight is negative, and they sum to one but for their rounding: only the top can overflow.
uint8_t to_byte(int32_t sum) {
  return static_cast<uint8_t>(std::min(sum >> kWeightBits, 255));
}

cv::Mat resample_rows(const cv::Mat& picture, int width) {
  const AxisTaps axis = taps_of(picture.cols, width);
  cv::Mat out(picture.rows, width, CV_8UC3);
  for (int y = 0; y < picture.rows; ++y) {
    const uint8_t* row = picture.ptr<uint8_t>(y);
    uint8_t* to = out.ptr<uint8_t>(y);
    for (const Taps& taps : axis.places) {
      const uint8_t* from = row + static_cast<ptrdiff_t>(taps.first) * kChannels;
      const int32_t* weights = axis.weights.data() + taps.weights;
      int32_t sums[kChannels] = {kHalf, kHalf, kHalf};
      for (int i = 0; i < taps.count; ++i, from += kChannels) {
        for (int c = 0; c < kChannels; ++c) sums[c] += from[c] * weights[i];
      }
      for (const int32_t sum : sums) *to++ = to_byte(sum);
    }
  }
  return out;
}

cv::Mat resample_columns(const cv::Mat& picture, int height) {
  const AxisTaps axis = taps_of(picture.rows, height);
  const auto bytes = static_cast<size_t>(picture.cols) * kChannels;
  cv::Mat out(height, picture.cols, CV_8UC3);
  std::vector<int32_t> sums(bytes);
  for (int y = 0; y < height; ++y) {
    const Taps& taps = axis.places[static_cast<size_t>(y)];
    std::fill(sums.begin(), sums.end(), kHalf);
    for (int i = 0; i < taps.count; ++i) {
      const uint8_t* from = picture.ptr<uint8_t>(taps.first + i);
      const int32_t weight = axis.weights[taps.weights + static_cast<size_t>(i)];
      for (size_t x = 0; x < bytes; ++x) sums[x] += from[x] * weight;
    }
    std::transform(sums.begin(), sums.end(), out.ptr<uint8_t>(y), to_byte);
  }
  return out;
}

}  // namespace

cv::Mat resample(const cv::Mat& picture, cv::Size size) {
  const cv::Mat wide = picture.cols == size.width ? picture : resample_rows(picture, size.width);
  return wide.rows == size.height ? wide : resample_columns(wide, size.height);
}

}  // namespace lockstep
