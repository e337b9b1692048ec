#include "lockstep/ocr/transforms/resize_region.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <opencv2/imgproc.hpp>
#include <vector>

namespace lockstep::ocr {
namespace {

/// For places of the result relative to `begin`, and places of the source relative to `origin`.
std::vector<Between> at_places(const std::vector<int>& places, int begin, double step, int side,
                               int origin) {
  std::vector<Between> result;
  result.reserve(places.size());
  for (const int at : places) {
    auto one = between(begin + at, step, side);
    one.first -= origin;
    one.second -= origin;
    result.push_back(one);
  }
  return result;
}

std::vector<Between> all_between(int begin, int count, double step, int side, int origin) {
  std::vector<int> places(static_cast<size_t>(count));
  std::iota(places.begin(), places.end(), 0);
  return at_places(places, begin, step, side, origin);
}

/// The used source places, in ascending order; in `list` they become 0, 1, ..
std::vector<int> renumber(std::vector<Between>& list) {
  std::vector<int> used;
  const auto number = [&used](int place) {  // places ascend, except for a step back of one
    if (used.empty() || used.back() < place) used.push_back(place);
    const auto last = static_cast<int>(used.size()) - 1;
    return used.back() == place ? last : last - 1;
  };
  for (auto& one : list) {
    one.first = number(one.first);
    one.second = number(one.second);
  }
  return used;
}

/// One source row at the columns of the result, in units of 1/128.
template <int kChannels>
void resize_row(const uint8_t* in, const std::vector<Between>& columns, int16_t* out) {
  for (const auto& column : columns) {
    const uint8_t *a = in + ptrdiff_t{kChannels} * column.first,
                  *b = in + ptrdiff_t{kChannels} * column.second;
    for (int c = 0; c < kChannels; ++c) {
      *out++ =
          static_cast<int16_t>((a[c] * column.first_weight + b[c] * column.second_weight) >> 4);
    }
  }
}

void mix_rows(const int16_t* a, const int16_t* b, const Between& row, size_t count, uint8_t* out) {
  const int16_t first = row.first_weight, second = row.second_weight;
  for (size_t i = 0; i < count; ++i) {
    const auto high_a = static_cast<int16_t>((a[i] * first) >> 16);
    const auto high_b = static_cast<int16_t>((b[i] * second) >> 16);
    out[i] = static_cast<uint8_t>(std::min((high_a + high_b + 2) >> 2, 255));
  }
}

template <int kChannels>
void resize_rows(const cv::Mat& pixels, const std::vector<Between>& rows,
                 const std::vector<Between>& columns, cv::Mat& result) {
  const size_t width = columns.size() * kChannels;
  std::vector<int16_t> above(width), below(width);
  int at_above = -1, at_below = -1;  // their source rows
  for (size_t y = 0; y < rows.size(); ++y) {
    const auto& row = rows[y];
    if (row.first == at_below) {
      above.swap(below);
      std::swap(at_above, at_below);
    }
    if (row.first != at_above) {
      resize_row<kChannels>(pixels.ptr(row.first), columns, above.data());
      at_above = row.first;
    }
    if (row.second != at_below) {
      resize_row<kChannels>(pixels.ptr(row.second), columns, below.data());
      at_below = row.second;
    }
    mix_rows(above.data(), below.data(), row, width, result.ptr(static_cast<int>(y)));
  }
}

bool is_8bit(const cv::Mat& pixels) {
  return pixels.type() == CV_8UC1 || pixels.type() == CV_8UC3;
}

cv::Mat resize_8bit(const cv::Mat& pixels, const std::vector<Between>& rows,
                    const std::vector<Between>& columns) {
  cv::Mat result(static_cast<int>(rows.size()), static_cast<int>(columns.size()), pixels.type());
  if (pixels.channels() == 1) {
    resize_rows<1>(pixels, rows, columns, result);
  } else {
    resize_rows<3>(pixels, rows, columns, result);
  }
  return result;
}

/// OpenCV copies if the size stays the same.
double effective(double scale, cv::Size size) {
  return resized_size(size, scale) == size ? 1 : scale;
}

}  // namespace

cv::Rect source_of_resized(cv::Size from, double scale, const cv::Rect& part) {
  scale = effective(scale, from);
  const cv::Point low(between(part.x, 1 / scale, from.width).first,
                      between(part.y, 1 / scale, from.height).first);
  const cv::Point high(between(part.br().x - 1, 1 / scale, from.width).second,
                       between(part.br().y - 1, 1 / scale, from.height).second);
  return {low, high + cv::Point(1, 1)};
}

cv::Size resized_size(cv::Size size, double scale) {
  return {static_cast<int>(std::nearbyint(size.width * scale)),
          static_cast<int>(std::nearbyint(size.height * scale))};
}

cv::Mat resized_part(const cv::Mat& pixels, cv::Point origin, cv::Size from, double scale,
                     const cv::Rect& part) {
  scale = effective(scale, from);
  if (is_8bit(pixels)) {
    return resize_8bit(pixels, all_between(part.y, part.height, 1 / scale, from.height, origin.y),
                       all_between(part.x, part.width, 1 / scale, from.width, origin.x));
  }
  const double shift = 0.5 * scale - 0.5;
  const cv::Matx23d matrix(scale, 0, origin.x * scale + shift - part.x, 0, scale,
                           origin.y * scale + shift - part.y);
  cv::Mat result;
  cv::warpAffine(pixels, result, matrix, part.size(), cv::INTER_LINEAR, cv::BORDER_REPLICATE);
  return result;
}

cv::Mat resized_twice(const cv::Mat& pixels, cv::Point origin, cv::Size from, double scale,
                      const cv::Rect& part, double second) {
  cv::Mat result;
  if (!is_8bit(pixels)) {
    cv::resize(resized_part(pixels, origin, from, scale, part), result, {}, second, second);
    return result;
  }
  const cv::Size size = resized_size(part.size(), second);
  scale = effective(scale, from);
  second = effective(second, part.size());
  auto rows = all_between(0, size.height, 1 / second, part.height, 0);
  auto columns = all_between(0, size.width, 1 / second, part.width, 0);
  const auto used_rows = renumber(rows), used_columns = renumber(columns);
  const cv::Mat between_both =
      resize_8bit(pixels, at_places(used_rows, part.y, 1 / scale, from.height, origin.y),
                  at_places(used_columns, part.x, 1 / scale, from.width, origin.x));
  return resize_8bit(between_both, rows, columns);
}

}  // namespace lockstep::ocr
