#include "lockstep/ocr/transforms/resize_planes.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <opencv2/imgproc.hpp>

#include "lockstep/ocr/transforms/resize_region.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lockstep::ocr {
namespace {

void resize_and_split(const cv::Mat& image, cv::Size size, std::vector<cv::Mat>& planes) {
  thread_local cv::Mat resized;
  cv::resize(image, resized, size);
  cv::split(resized, planes);
}

#if defined(__x86_64__)

constexpr int kChannels = 3;
constexpr size_t kColumns = 8;   // of the result, computed at once
constexpr int kLeastWidth = 16;  // of the result, for whole registers of bytes

/// OpenCV's step size, with its rounding.
double step_of(int from, int to) {
  return 1 / (static_cast<double>(to) / from);
}

/// Columns of the result: the byte offsets of the left pixel, and the weights of it and its right
/// neighbour.
struct Columns {
  std::vector<int> offsets;
  std::vector<std::array<int16_t, 2>> weights;

  void set(int from, int to) {
    const size_t groups = (static_cast<size_t>(to) + kColumns - 1) / kColumns;
    offsets.assign(groups * kColumns, 0);
    weights.assign(groups * kColumns, {0, 0});
    const double step = step_of(from, to);
    for (int x = 0; x < to; ++x) {
      const auto column = between(x, step, from);
      const auto at = static_cast<size_t>(x);
      const int left = std::min(column.first, from - 2);  // the last pixel is a right neighbour
      const auto weight_at = [&column](int pixel) {
        return (column.first == pixel ? column.first_weight : 0) +
               (column.second == pixel ? column.second_weight : 0);
      };
      offsets[at] = kChannels * left;
      weights[at] = {static_cast<int16_t>(weight_at(left)),
                     static_cast<int16_t>(weight_at(left + 1))};
    }
  }
};

/// A source row at the columns of the result: channel after channel, in units of 1/128.
struct WideRow {
  int source = -1;
  std::vector<int16_t> values;
};

#define LOCKSTEP_AVX2 __attribute__((target("avx2")))

/// Eight bytes of each: two neighbouring pixels and a rest.
LOCKSTEP_AVX2 inline __m128i two_pairs(const uint8_t* a, const uint8_t* b) {
  uint64_t low = 0, high = 0;
  std::memcpy(&low, a, sizeof(low));
  std::memcpy(&high, b, sizeof(high));
  return _mm_set_epi64x(static_cast<int64_t>(high), static_cast<int64_t>(low));
}

LOCKSTEP_AVX2 inline __m256i mixed_columns(__m256i pairs, __m256i weights) {
  return _mm256_srai_epi32(_mm256_madd_epi16(pairs, weights), 4);
}

/// Eight 16-bit numbers from eight of `a`, followed by those of `b`.
LOCKSTEP_AVX2 inline __m256i narrowed(__m256i a, __m256i b) {
  constexpr int kHalvesInOrder = 0b11'01'10'00;
  return _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), kHalvesInOrder);
}

LOCKSTEP_AVX2 inline void store(__m128i values, void* out) {
  _mm_storeu_si128(static_cast<__m128i*>(out), values);
}

/// Reads two bytes past the last pixel.
LOCKSTEP_AVX2 void resize_row_avx2(const uint8_t* in, const Columns& columns, int16_t* out) {
  // Of two pairs of pixels, in each half of a register: both blues as 16 bits each, both greens.
  const __m256i to_bg = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, -1, 3, -1, 8, -1, 11, -1, 1, -1, 4, -1, 9, -1, 12, -1));
  const __m256i to_red = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(2, -1, 5, -1, 10, -1, 13, -1, -1, -1, -1, -1, -1, -1, -1, -1));
  const size_t width = columns.offsets.size();
  for (size_t x = 0; x < width; x += kColumns) {
    const int* at = columns.offsets.data() + x;
    const __m256i outer =
        _mm256_set_m128i(two_pairs(in + at[4], in + at[5]), two_pairs(in + at[0], in + at[1]));
    const __m256i inner =
        _mm256_set_m128i(two_pairs(in + at[6], in + at[7]), two_pairs(in + at[2], in + at[3]));
    const __m256i weights =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(columns.weights.data() + x));
    const __m256i outer_bg = _mm256_shuffle_epi8(outer, to_bg);
    const __m256i inner_bg = _mm256_shuffle_epi8(inner, to_bg);
    const __m256i reds = _mm256_unpacklo_epi64(_mm256_shuffle_epi8(outer, to_red),
                                               _mm256_shuffle_epi8(inner, to_red));
    const __m256i b = mixed_columns(_mm256_unpacklo_epi64(outer_bg, inner_bg), weights);
    const __m256i g = mixed_columns(_mm256_unpackhi_epi64(outer_bg, inner_bg), weights);
    const __m256i r = mixed_columns(reds, weights);
    const __m256i bg = narrowed(b, g);
    store(_mm256_castsi256_si128(bg), out + x);
    store(_mm256_extracti128_si256(bg, 1), out + width + x);
    store(_mm256_castsi256_si128(narrowed(r, r)), out + 2 * width + x);
  }
}

LOCKSTEP_AVX2 inline __m128i high_products(const int16_t* values, __m128i weight) {
  return _mm_mulhi_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(values)), weight);
}

LOCKSTEP_AVX2 inline __m128i mixed_rows(const int16_t* a, const int16_t* b, __m128i first,
                                        __m128i second) {
  const __m128i sum = _mm_add_epi16(high_products(a, first), high_products(b, second));
  return _mm_srai_epi16(_mm_add_epi16(sum, _mm_set1_epi16(2)), 2);
}

/// `width` values, at least kLeastWidth.
LOCKSTEP_AVX2 void mix_rows_avx2(const int16_t* a, const int16_t* b, const Between& row, int width,
                                 uint8_t* out) {
  const __m128i first = _mm_set1_epi16(row.first_weight);
  const __m128i second = _mm_set1_epi16(row.second_weight);
  for (int begin = 0; begin < width; begin += kLeastWidth) {
    const int x = std::min(begin, width - kLeastWidth);  // the last ones overlap
    const __m128i low = mixed_rows(a + x, b + x, first, second);
    const __m128i high = mixed_rows(a + x + 8, b + x + 8, first, second);
    store(_mm_packus_epi16(low, high), out + x);
  }
}

class PlaneResizer {
 public:
  void resize(const cv::Mat& image, cv::Size size, std::vector<cv::Mat>& planes) {
    columns_.set(image.cols, size.width);
    for (auto& row : rows_) {
      row.source = -1;
      row.values.resize(kChannels * columns_.offsets.size());
    }
    keep_last_row(image);
    const double step = step_of(image.rows, size.height);
    for (int y = 0; y < size.height; ++y) {
      const auto row = between(y, step, image.rows);
      const auto* above = row_of(image, row.first);
      const auto* below = row_of(image, row.second);
      for (size_t channel = 0; channel < kChannels; ++channel) {
        const size_t at = channel * columns_.offsets.size();
        mix_rows_avx2(above + at, below + at, row, size.width, planes[channel].ptr(y));
      }
    }
  }

 private:
  /// A row is read slightly past its end, into the next one: the last needs extra room.
  void keep_last_row(const cv::Mat& image) {
    const size_t count = image.elemSize() * static_cast<size_t>(image.cols);
    last_row_.resize(count + 2);
    std::memcpy(last_row_.data(), image.ptr(image.rows - 1), count);
  }

  /// Keeps two rows with consecutive numbers.
  const int16_t* row_of(const cv::Mat& image, int y) {
    auto& row = rows_[static_cast<size_t>(y % 2)];
    if (row.source != y) {
      resize_row_avx2(y == image.rows - 1 ? last_row_.data() : image.ptr(y), columns_,
                      row.values.data());
      row.source = y;
    }
    return row.values.data();
  }

  Columns columns_;
  std::array<WideRow, 2> rows_;
  std::vector<uint8_t> last_row_;
};

/// OpenCV copies if the size stays the same, and averages if it halves.
bool is_between_pixels(cv::Size from, cv::Size to) {
  return from != to && from != to * 2 && from.width >= 2 && to.width >= kLeastWidth;
}

#endif

}  // namespace

void resize_to_planes(const cv::Mat& image, cv::Size size, std::vector<cv::Mat>& planes) {
#if defined(__x86_64__)
  static const bool has_avx2 = cv::checkHardwareSupport(CV_CPU_AVX2);
  if (has_avx2 && is_between_pixels(image.size(), size)) {
    thread_local PlaneResizer resizer;  // most images have the same sizes: no allocation
    planes.resize(kChannels);
    for (auto& plane : planes) plane.create(size, CV_8U);
    return resizer.resize(image, size, planes);
  }
#endif
  resize_and_split(image, size, planes);
}

}  // namespace lockstep::ocr
