#include "lockstep/models/layers.h"

#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <limits>

namespace lockstep {
namespace {

TEST(SamePadding, PutsTheOddOneBehind) {
  const auto of = [](int64_t size, int64_t kernel, int64_t stride) {
    const auto padding = same_padding(size, kernel, stride);
    return std::pair(padding.before, padding.after);
  };
  EXPECT_EQ(of(8, 3, 2), std::pair(0L, 1L));
  EXPECT_EQ(of(7, 3, 2), std::pair(1L, 1L));
  EXPECT_EQ(of(8, 5, 2), std::pair(1L, 2L));
  EXPECT_EQ(of(8, 3, 1), std::pair(1L, 1L));
  EXPECT_EQ(of(7, 2, 2), std::pair(0L, 1L));
  EXPECT_EQ(of(8, 1, 2), std::pair(0L, 0L));
}

/// x with explicit "same" padding.
at::Tensor padded(const at::Tensor& x, Pair kernel, Pair stride, double value) {
  const auto rows = same_padding(x.size(2), kernel[0], stride[0]);
  const auto columns = same_padding(x.size(3), kernel[1], stride[1]);
  return at::constant_pad_nd(x, {columns.before, columns.after, rows.before, rows.after}, value);
}

TEST(SamePadding, PoolsEqualPoolsOfThePaddedInput) {
  torch::manual_seed(1);
  for (const int64_t height : {6, 7, 8, 9}) {
    const auto x = at::randn({2, 3, height, 17 - height});
    for (const auto& [kernel, stride] : {std::pair(Pair{3, 3}, Pair{2, 2}),
                                         {{2, 2}, {2, 2}},
                                         {{2, 1}, {2, 1}},
                                         {{3, 3}, {1, 1}}}) {
      const auto expected = at::max_pool2d(
          padded(x, kernel, stride, -std::numeric_limits<double>::infinity()), kernel, stride);
      EXPECT_TRUE(max_pool_same(x, kernel, stride).equal(expected)) << height;
      const auto sum = at::avg_pool2d(padded(x, kernel, stride, 0), kernel, stride);
      const auto part = at::avg_pool2d(padded(at::ones_like(x), kernel, stride, 0), kernel, stride);
      EXPECT_TRUE(avg_pool_same(x, kernel, stride).allclose(sum / part, 1e-5, 1e-6)) << height;
    }
  }
}

TEST(SamePadding, ConvolutionsEqualConvolutionsOfThePaddedInput) {
  torch::manual_seed(2);
  for (const int64_t kernel : {3, 5}) {
    for (const int64_t stride : {1, 2}) {
      SameConv2d conv(torch::nn::Conv2dOptions(4, 4, kernel).stride(stride).groups(4).bias(false));
      for (const int64_t size : {8, 9}) {
        const auto x = at::randn({2, 4, size, 17 - size});
        const auto expected =
            at::conv2d(padded(x, {kernel, kernel}, {stride, stride}, 0), conv.weight, at::Tensor(),
                       {stride, stride}, at::IntArrayRef{0, 0}, 1, 4);
        EXPECT_TRUE(conv.forward(x).allclose(expected, 1e-5, 1e-6)) << kernel << stride << size;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
