#pragma once
// Deformable convolution as loops on the CPU, and from libtorch's operations for other devices.
// Both give the same numbers, except for the order of sums.
// Legend: n images, P places of the output, K taps, C channels.

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace lockstep::deform {

// The loops of deformable convolution on the CPU, over one image with contiguous channels.

/// Sizes of one image's problem.
struct Shape {
  int64_t channels, rows, columns;  ///< Of x.
  int64_t out_rows, out_columns;    ///< Of the output.
  int64_t kernel_rows, kernel_columns;
  int64_t stride_rows, stride_columns;
  int64_t pad_rows, pad_columns;

  int64_t taps() const { return kernel_rows * kernel_columns; }
  int64_t places() const { return out_rows * out_columns; }
};

/// A point between four pixels, in the order (top left, top right, bottom left, bottom right).
template <typename T>
struct Corners {
  std::array<int64_t, 4> pixel;  ///< Row * columns + column, or -1: outside.
  std::array<T, 4> weight;
  T down, right;  ///< The point's distance from the top left pixel, in [0, 1).
};

template <typename T>
Corners<T> corners_of(T y, T x, int64_t rows, int64_t columns) {
  Corners<T> at{{-1, -1, -1, -1}, {}, 0, 0};
  // This form treats NaN as outside, too; the conversion below would be undefined.
  if (!(y > -1 && y < static_cast<T>(rows) && x > -1 && x < static_cast<T>(columns))) return at;
  const T top = std::floor(y), left = std::floor(x);
  const auto row = static_cast<int64_t>(top), column = static_cast<int64_t>(left);
  at.down = y - top;
  at.right = x - left;
  at.weight = {(1 - at.down) * (1 - at.right), (1 - at.down) * at.right, at.down * (1 - at.right),
               at.down * at.right};
  for (int64_t i = 0; i < 4; ++i) {
    const int64_t r = row + i / 2, c = column + i % 2;
    if (r >= 0 && r < rows && c >= 0 && c < columns) {
      at.pixel[static_cast<size_t>(i)] = r * columns + c;
    }
  }
  return at;
}

/// The corners of tap k of place p. offset: (2 taps, places).
template <typename T>
Corners<T> corners_of_tap(const Shape& s, const T* offset, int64_t p, int64_t k) {
  const int64_t places = s.places();
  const int64_t row = p / s.out_columns * s.stride_rows - s.pad_rows + k / s.kernel_columns;
  const int64_t column =
      p % s.out_columns * s.stride_columns - s.pad_columns + k % s.kernel_columns;
  return corners_of<T>(static_cast<T>(row) + offset[2 * k * places + p],
                       static_cast<T>(column) + offset[(2 * k + 1) * places + p], s.rows,
                       s.columns);
}

/// columns(p, k, c) = mask(k, p) * x at the tap, channel c. x: (rows, columns, channels).
template <typename T>
void gather(const Shape& s, const T* x, const T* offset, const T* mask, T* columns) {
  const int64_t taps = s.taps(), places = s.places(), channels = s.channels;
  at::parallel_for(0, places, 64, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      for (int64_t k = 0; k < taps; ++k) {
        T* const out = columns + (p * taps + k) * channels;
        std::fill_n(out, channels, T{0});
        const auto at = corners_of_tap(s, offset, p, k);
        for (size_t i = 0; i < 4; ++i) {
          if (at.pixel[i] < 0) continue;
          const T weight = at.weight[i] * mask[k * places + p];
          const T* const in = x + at.pixel[i] * channels;
          for (int64_t c = 0; c < channels; ++c) out[c] += weight * in[c];
        }
      }
    }
  });
}

/// The transpose of gather(): adds each column to its pixels. Threads divide the channels, so that
/// each pixel's sum has the one order of (p, k).
template <typename T>
void scatter(const Shape& s, const T* columns, const T* offset, const T* mask, T* grad_x) {
  const int64_t taps = s.taps(), places = s.places(), channels = s.channels;
  at::parallel_for(0, channels, 16, [&](int64_t begin, int64_t end) {
    for (int64_t p = 0; p < places; ++p) {
      for (int64_t k = 0; k < taps; ++k) {
        const T* const in = columns + (p * taps + k) * channels;
        const auto at = corners_of_tap(s, offset, p, k);
        for (size_t i = 0; i < 4; ++i) {
          if (at.pixel[i] < 0) continue;
          const T weight = at.weight[i] * mask[k * places + p];
          T* const out = grad_x + at.pixel[i] * channels;
          for (int64_t c = begin; c < end; ++c) out[c] += weight * in[c];
        }
      }
    }
  });
}

/// The sum of a[i] * b[i], in an order that suits vector registers.
template <typename T>
T dot(const T* a, const T* b, int64_t size) {
  constexpr int64_t kLanes = 16;
  std::array<T, kLanes> sums{};
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      sums[static_cast<size_t>(lane)] += a[i + lane] * b[i + lane];
    }
  }
  T sum = 0;
  for (; i < size; ++i) sum += a[i] * b[i];
  for (const T part : sums) sum += part;
  return sum;
}

/// Gradients of offset (2 taps, places) and mask (taps, places) from those of the columns.
template <typename T>
void gradients_of_taps(const Shape& s, const T* x, const T* grad_columns, const T* offset,
                       const T* mask, T* grad_offset, T* grad_mask) {
  const int64_t taps = s.taps(), places = s.places(), channels = s.channels;
  at::parallel_for(0, places, 64, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      for (int64_t k = 0; k < taps; ++k) {
        const T* const grad = grad_columns + (p * taps + k) * channels;
        const auto at = corners_of_tap(s, offset, p, k);
        std::array<T, 4> d{};
        for (size_t i = 0; i < 4; ++i) {
          if (at.pixel[i] >= 0) d[i] = dot(grad, x + at.pixel[i] * channels, channels);
        }
        const T m = mask[k * places + p];
        grad_mask[k * places + p] =
            at.weight[0] * d[0] + at.weight[1] * d[1] + at.weight[2] * d[2] + at.weight[3] * d[3];
        grad_offset[2 * k * places + p] =
            m * ((1 - at.right) * (d[2] - d[0]) + at.right * (d[3] - d[1]));
        grad_offset[(2 * k + 1) * places + p] =
            m * ((1 - at.down) * (d[1] - d[0]) + at.down * (d[3] - d[2]));
      }
    }
  });
}

struct Gradients {
  at::Tensor x, offset, mask;
};

/// (n P, K C): mask(k, p) * x at the tap. x: (n, rows, columns, C), contiguous; offset:
/// (n, 2 K, out rows, out columns); mask: (n, K, out rows, out columns). All of one floating type
/// and device. Memory: three times the result's.
at::Tensor tap_columns(const Shape& s, const at::Tensor& x, const at::Tensor& offset,
                       const at::Tensor& mask);

/// Gradients with the arguments' shapes, from those of the columns. Memory: four times the
/// columns'. On CUDA the sums of x's gradients have no fixed order (index_add_), as in torchvision.
Gradients tap_gradients(const Shape& s, const at::Tensor& x, const at::Tensor& offset,
                        const at::Tensor& mask, const at::Tensor& grad_columns);

}  // namespace lockstep::deform
