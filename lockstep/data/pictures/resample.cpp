#include "lockstep/data/pictures/resample.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lockstep::inline internal {
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

/// The part of an axis that is shown.
struct Interval {
  double first = 0;
  double extent = 0;
};

AxisTaps taps_of(int input, int output, Interval shown) {
  const double scale = shown.extent / output;
  const double reach = std::max(scale, 1.0);  // of the triangle, on either side
  AxisTaps axis;
  std::vector<double> exact;
  for (int i = 0; i < output; ++i) {
    const double center = shown.first + (i + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(std::floor(center - reach + 0.5)));
    const int last = std::min(input, static_cast<int>(std::floor(center + reach + 0.5)));
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
      axis.weights.push_back(static_cast<int32_t>(std::floor(share * (1 << kWeightBits) + 0.5)));
    }
  }
  return axis;
}

/// No weight is negative, and they sum to one but for their rounding: only the top can overflow.
uint8_t to_byte(int32_t sum) {
  return static_cast<uint8_t>(std::min(sum >> kWeightBits, 255));
}

/// A row of the result.
void mix_pixels(const AxisTaps& axis, const uint8_t* row, uint8_t* to) {
  for (const Taps& taps : axis.places) {
    const uint8_t* pixel = row + static_cast<ptrdiff_t>(taps.first) * kChannels;
    const int32_t* weights = axis.weights.data() + taps.weights;
    int32_t sums[kChannels] = {kHalf, kHalf, kHalf};
    for (int i = 0; i < taps.count; ++i, pixel += kChannels) {
      for (int c = 0; c < kChannels; ++c) sums[c] += pixel[c] * weights[i];
    }
    for (const int32_t sum : sums) *to++ = to_byte(sum);
  }
}

/// Bytes [from, end) of a row of the result.
void mix_rows(const std::vector<const uint8_t*>& rows, const int32_t* weights, size_t from,
              size_t end, uint8_t* out) {
  for (size_t x = from; x < end; ++x) {
    int32_t sum = kHalf;
    for (size_t i = 0; i < rows.size(); ++i) sum += rows[i][x] * weights[i];
    out[x] = to_byte(sum);
  }
}

#if defined(__x86_64__)

#define LOCKSTEP_AVX2 __attribute__((target("avx2")))

bool has_avx2() {
  static const bool has = cv::checkHardwareSupport(CV_CPU_AVX2);
  return has;
}

/// Three bytes and a fourth, which does not count, as numbers: of `a`, then of `b`.
LOCKSTEP_AVX2 inline __m256i two_pixels(const uint8_t* a, const uint8_t* b) {
  int32_t first = 0, second = 0;
  std::memcpy(&first, a, sizeof(first));
  std::memcpy(&second, b, sizeof(second));
  return _mm256_cvtepu8_epi32(_mm_set_epi32(0, 0, second, first));
}

LOCKSTEP_AVX2 inline void store_pixel(__m128i sums, uint8_t* out) {
  const __m128i values = _mm_srai_epi32(sums, kWeightBits);
  const __m128i bytes = _mm_packus_epi16(_mm_packus_epi32(values, values), values);
  const int32_t pixel = _mm_cvtsi128_si32(bytes);
  std::memcpy(out, &pixel, kChannels);
}

/// Two rows at once. Each is readable a byte past its last pixel.
LOCKSTEP_AVX2 void mix_pixels_avx2(const AxisTaps& axis, const uint8_t* const rows[2],
                                   uint8_t* const out[2]) {
  for (size_t x = 0; x < axis.places.size(); ++x) {
    const Taps& taps = axis.places[x];
    const auto first = static_cast<ptrdiff_t>(taps.first) * kChannels;
    const int32_t* weights = axis.weights.data() + taps.weights;
    __m256i sums = _mm256_set1_epi32(kHalf);
    for (int i = 0; i < taps.count; ++i) {
      const ptrdiff_t at = first + ptrdiff_t{i} * kChannels;
      const __m256i pixels = two_pixels(rows[0] + at, rows[1] + at);
      sums = _mm256_add_epi32(sums, _mm256_mullo_epi32(pixels, _mm256_set1_epi32(weights[i])));
    }
    store_pixel(_mm256_castsi256_si128(sums), out[0] + x * kChannels);
    store_pixel(_mm256_extracti128_si256(sums, 1), out[1] + x * kChannels);
  }
}

/// Sixteen bytes at once; returns how many bytes of `end` are done.
LOCKSTEP_AVX2 size_t mix_rows_avx2(const std::vector<const uint8_t*>& rows, const int32_t* weights,
                                   size_t end, uint8_t* out) {
  constexpr size_t kAtOnce = 16;
  size_t x = 0;
  for (; x + kAtOnce <= end; x += kAtOnce) {
    __m256i low = _mm256_set1_epi32(kHalf), high = low;
    for (size_t i = 0; i < rows.size(); ++i) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[i] + x));
      const __m256i weight = _mm256_set1_epi32(weights[i]);
      const __m256i first = _mm256_cvtepu8_epi32(bytes);
      const __m256i second = _mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8));
      low = _mm256_add_epi32(low, _mm256_mullo_epi32(first, weight));
      high = _mm256_add_epi32(high, _mm256_mullo_epi32(second, weight));
    }
    constexpr int kHalvesInOrder = 0b11'01'10'00;
    const __m256i words =
        _mm256_permute4x64_epi64(_mm256_packus_epi32(_mm256_srai_epi32(low, kWeightBits),
                                                     _mm256_srai_epi32(high, kWeightBits)),
                                 kHalvesInOrder);
    const __m128i result =
        _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + x), result);
  }
  return x;
}

#endif

/// Rows up to the last are followed by readable bytes: those of the next one.
void mix_pairs_of_rows([[maybe_unused]] const AxisTaps& axis,
                       [[maybe_unused]] const cv::Mat& picture, [[maybe_unused]] cv::Mat& out,
                       [[maybe_unused]] int& done) {
#if defined(__x86_64__)
  if (!has_avx2()) return;
  for (; done + 2 < picture.rows; done += 2) {
    const uint8_t* const rows[2] = {picture.ptr(done), picture.ptr(done + 1)};
    uint8_t* const to[2] = {out.ptr(done), out.ptr(done + 1)};
    mix_pixels_avx2(axis, rows, to);
  }
#endif
}

cv::Mat resample_rows(const cv::Mat& picture, int width, Interval shown) {
  const AxisTaps axis = taps_of(picture.cols, width, shown);
  cv::Mat out(picture.rows, width, CV_8UC3);
  int done = 0;
  mix_pairs_of_rows(axis, picture, out, done);
  for (int y = done; y < picture.rows; ++y) mix_pixels(axis, picture.ptr(y), out.ptr(y));
  return out;
}

cv::Mat resample_columns(const cv::Mat& picture, int height, Interval shown) {
  const AxisTaps axis = taps_of(picture.rows, height, shown);
  const auto bytes = static_cast<size_t>(picture.cols) * kChannels;
  cv::Mat out(height, picture.cols, CV_8UC3);
  std::vector<const uint8_t*> rows;
  for (int y = 0; y < height; ++y) {
    const Taps& taps = axis.places[static_cast<size_t>(y)];
    const int32_t* weights = axis.weights.data() + taps.weights;
    rows.clear();
    for (int i = 0; i < taps.count; ++i) rows.push_back(picture.ptr(taps.first + i));
    size_t done = 0;
#if defined(__x86_64__)
    if (has_avx2()) done = mix_rows_avx2(rows, weights, bytes, out.ptr(y));
#endif
    mix_rows(rows, weights, done, bytes, out.ptr(y));
  }
  return out;
}

}  // namespace

cv::Mat resample(const cv::Mat& picture, cv::Size size) {
  return resample(picture, size, {{0, 0}, cv::Size2d(picture.size())});
}

cv::Mat resample(const cv::Mat& picture, cv::Size size, const cv::Rect2d& box) {
  const bool wide = picture.cols == size.width && box.width == size.width;
  const bool high = picture.rows == size.height && box.height == size.height;
  const cv::Mat rows = wide ? picture : resample_rows(picture, size.width, {box.x, box.width});
  return high ? rows : resample_columns(rows, size.height, {box.y, box.height});
}

}  // namespace lockstep::inline internal
