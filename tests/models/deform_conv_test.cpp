#include "lockstep/models/deform/deform_conv.h"

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/grid_sampler.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <functional>
#include <limits>

#include "tests/models/gradcheck.h"
#include "tests/models/specs.h"
#include "tests/tensor/support/guarded_device.h"

namespace lockstep {
namespace {

constexpr Pair kStride = {2, 1}, kPadding = {1, 0};

struct Problem {
  at::Tensor x, offset, mask, weight, bias;
  std::vector<at::Tensor> all() const { return {x, offset, mask, weight, bias}; }
};

/// Kernel 3 x 2, offsets of a few pixels: within, at the edges of and outside the image.
Problem random_problem(at::ScalarType type, double spread = 1.5) {
  torch::manual_seed(1);
  const int64_t n = 2, h = 3, w = 5, taps = 6;
  return {at::randn({n, 3, 5, 6}, type), at::randn({n, 2 * taps, h, w}, type) * spread,
          at::randn({n, taps, h, w}, type), at::randn({4, 3, 3, 2}, type), at::randn({4}, type)};
}

at::Tensor of(const std::vector<at::Tensor>& p) {
  return deform_conv2d(p[0], p[1], p[2], p[3], p[4], kStride, kPadding);
}

TEST(DeformConv, WithoutOffsetsIsAConvolution) {
  auto p = random_problem(at::kDouble, 0);
  p.mask.fill_(1);
  EXPECT_TRUE(of(p.all()).allclose(at::conv2d(p.x, p.weight, p.bias, kStride, kPadding)));
}

TEST(DeformConv, WholeOffsetsMoveTheImage) {
  auto p = random_problem(at::kDouble, 0);
  p.mask.fill_(0.5);
  p.offset.view({2, 6, 2, 3, 5}).select(2, 0).fill_(1);   // one row down,
  p.offset.view({2, 6, 2, 3, 5}).select(2, 1).fill_(-2);  // two columns to the left
  at::Tensor moved = at::zeros_like(p.x);
  moved.slice(2, 0, 4).slice(3, 2).copy_(p.x.slice(2, 1).slice(3, 0, 4));
  // The part outside the moved frame, but inside the image: row 0, reached from the padding.
  at::Tensor wide = at::zeros({2, 3, 7, 6}, at::kDouble);
  wide.slice(2, 1, 6).copy_(moved);
  wide.select(2, 0).slice(1 + 1, 2).copy_(p.x.select(2, 0).slice(2, 0, 4));
  const auto expected = at::conv2d(wide, p.weight * 0.5, p.bias, kStride);
  EXPECT_TRUE(of(p.all()).allclose(expected));
}

TEST(DeformConv, BetweenPixelsIsBilinearAndOutsideIsZero) {
  const auto x = at::tensor({1.0, 2.0, 3.0, 5.0}, at::kDouble).view({1, 1, 2, 2});
  const auto at_point = [&](double row, double column) {
    return deform_conv2d(
               x, at::tensor({row, column}, at::kDouble).view({1, 2, 1, 1}).expand({1, 2, 2, 2}),
               at::ones({1, 1, 2, 2}, at::kDouble), at::ones({1, 1, 1, 1}, at::kDouble), {}, {1, 1},
               {0, 0})[0][0][0][0]
        .item<double>();
  };
  EXPECT_DOUBLE_EQ(at_point(0.5, 0.25), 0.5 * (0.75 * 1 + 0.25 * 2) + 0.5 * (0.75 * 3 + 0.25 * 5));
  EXPECT_DOUBLE_EQ(at_point(1.75, 1), 0.25 * 5);
  EXPECT_DOUBLE_EQ(at_point(-0.5, 0), 0.5 * 1);
  EXPECT_DOUBLE_EQ(at_point(-1, 0), 0);
  EXPECT_DOUBLE_EQ(at_point(0, 1e30), 0);
  EXPECT_DOUBLE_EQ(at_point(std::numeric_limits<double>::quiet_NaN(), 0), 0);
}

/// The results of an implementation: the output, and the gradients of x, offset, mask, weight,
/// bias.
using Way = std::function<at::Tensor(const std::vector<at::Tensor>&)>;
std::vector<at::Tensor> results_of(const Way& way, const Problem& problem, at::Device device) {
  std::vector<at::Tensor> leaves;
  for (const auto& input : problem.all()) {
    leaves.push_back(input.to(device, input.scalar_type(), false, /*copy=*/true));
    leaves.back().set_requires_grad(true);
  }
  const auto out = way(leaves);
  EXPECT_EQ(out.device(), leaves[0].device());
  auto results = torch::autograd::grad({out.sin().sum()}, leaves);
  results.insert(results.begin(), out.detach());
  for (auto& result : results) result = result.cpu();
  return results;
}

void expect_close(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b,
                  double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_LT((a[i] - b[i]).abs().max().item<double>(), tolerance) << "result " << i;
  }
}

/// Every geometry, with taps within, at the edges of, far outside the image and at NaN.
TEST(DeformConv, OfLibtorchsOperationsEqualsTheLoopsOfTheCpu) {
  for (const Pair stride : {Pair{1, 1}, Pair{2, 1}, Pair{2, 3}}) {
    for (const Pair padding : {Pair{0, 0}, Pair{1, 0}, Pair{3, 2}}) {
      torch::manual_seed(4);
      const int64_t h = (5 + 2 * padding[0] - 3) / stride[0] + 1,
                    w = (6 + 2 * padding[1] - 2) / stride[1] + 1;
      Problem p = {at::randn({3, 4, 5, 6}, at::kDouble), at::randn({3, 12, h, w}, at::kDouble) * 2,
                   at::randn({3, 6, h, w}, at::kDouble), at::randn({2, 4, 3, 2}, at::kDouble),
                   at::randn({2}, at::kDouble)};
      p.offset[0][0][0][0] = 1e30;
      p.offset[0][2][0][0] = std::numeric_limits<double>::quiet_NaN();
      p.offset[1].fill_(1);  // on pixels
      const Way loops = [&](const auto& in) {
        return deform_conv2d(in[0], in[1], in[2], in[3], in[4], stride, padding);
      };
      const auto expected = results_of(loops, p, at::kCPU);
      const int64_t of_image = 4 * 6 * h * w;
      for (const int64_t numbers : {int64_t{1}, 2 * of_image, kDeformColumns}) {
        const Way composite = [&](const auto& in) {
          return deform_conv2d_composite(in[0], in[1], in[2], in[3], in[4], stride, padding,
                                         numbers);
        };
        expect_close(results_of(composite, p, at::kCPU), expected, 1e-9);
      }
    }
  }
}

/// The host cannot access the device's memory.
TEST(DeformConv, OnAnotherDeviceEqualsTheCpu) {
  for (const auto type : {at::kDouble, at::kFloat}) {
    const auto problem = random_problem(type);
    expect_close(results_of(of, problem, testing::guarded_device(1)),
                 results_of(of, problem, at::kCPU), type == at::kDouble ? 1e-9 : 1e-3);
  }
}

/// bfloat16 has 8 bits: a place in a picture would be wrong by pixels.
TEST(DeformConv, PlacesAreInFullPrecisionWhateverTheTypeOfTheImage) {
  torch::manual_seed(5);
  const auto x = at::randn({1, 2, 4, 600}).to(at::kBFloat16);
  const auto offset = at::randn({1, 2, 4, 600}), mask = at::ones({1, 1, 4, 600}),
             weight = at::randn({3, 2, 1, 1}).to(at::kBFloat16);
  const auto exact = deform_conv2d(x.to(at::kDouble), offset.to(at::kDouble), mask.to(at::kDouble),
                                   weight.to(at::kDouble), {}, {1, 1}, {0, 0});
  for (const auto way : {false, true}) {
    const auto out = way ? deform_conv2d_composite(x, offset, mask, weight, {}, {1, 1}, {0, 0})
                         : deform_conv2d(x, offset, mask, weight, {}, {1, 1}, {0, 0});
    EXPECT_EQ(out.scalar_type(), at::kBFloat16);
    EXPECT_TRUE(out.to(at::kDouble).allclose(exact, 1e-2, 1e-3)) << way;
  }
}

/// Another source of the same numbers: libtorch's own bilinear sampler.
TEST(DeformConv, EqualsGridSamplersTaps) {
  const auto p = random_problem(at::kDouble);
  const int64_t rows = 3, columns = 5, taps = 6;
  const auto moves = p.offset.view({2, taps, 2, rows, columns});
  std::vector<at::Tensor> sampled;
  for (int64_t k = 0; k < taps; ++k) {
    const auto y = moves.select(1, k).select(1, 0) +
                   (at::arange(rows, at::kDouble) * kStride[0] - kPadding[0] + k / 2).view({-1, 1});
    const auto x = moves.select(1, k).select(1, 1) +
                   (at::arange(columns, at::kDouble) * kStride[1] - kPadding[1] + k % 2);
    const auto grid = at::stack({(2 * x + 1) / 6 - 1, (2 * y + 1) / 5 - 1}, 3);
    sampled.push_back(at::grid_sampler(p.x, grid, /*bilinear*/ 0, /*zeros*/ 0, false) *
                      p.mask.narrow(1, k, 1));
  }
  const auto expected = at::einsum("nkchw,ock->nohw", {at::stack(sampled, 1), p.weight.flatten(2)},
                                   at::OptionalIntArrayRef()) +
                        p.bias.view({1, -1, 1, 1});
  EXPECT_TRUE(of(p.all()).allclose(expected, 1e-9, 1e-9));
}

TEST(DeformConv, GradientsAreDifferences) {
  expect_gradients([](const auto& p) { return of(p).sin().sum(); },
                   random_problem(at::kDouble).all());
}

TEST(DeformConv, BitsDoNotDependOnThreads) {
  torch::manual_seed(2);
  // Whole weights make the matrix product exact, so only the loops matter.
  const std::vector<at::Tensor> p = {at::randn({1, 48, 20, 20}), at::randn({1, 18, 20, 20}) * 3,
                                     at::randn({1, 9, 20, 20}),
                                     (at::randn({48, 48, 3, 3}) * 4).round()};
  std::vector<at::Tensor> first;
  const int before = at::get_num_threads();
  for (const int threads : {1, 2, 2}) {
    at::set_num_threads(threads);
    std::vector<at::Tensor> leaves;
    for (const auto& input : p) leaves.push_back(input.clone().set_requires_grad(true));
    const auto out = deform_conv2d(leaves[0], leaves[1], leaves[2], leaves[3], {}, {1, 1}, {1, 1});
    const auto grads =
        torch::autograd::grad({out}, {leaves[0], leaves[1], leaves[2]}, {at::ones_like(out)});
    if (first.empty()) first = grads;
    for (size_t i = 0; i < grads.size(); ++i) EXPECT_TRUE(grads[i].equal(first[i])) << i;
  }
  at::set_num_threads(before);
}

TEST(DeformConv, RefusesShapesThatDoNotFit) {
  auto p = random_problem(at::kDouble).all();
  p[2] = p[2].narrow(1, 0, 5);
  EXPECT_NE(std::string(error_of([&] { of(p); }).what()).find("mask (2, 5, 3, 5)"),
            std::string::npos);
}

TEST(DeformConv, StandsInTheLastThreeStages) {
  auto spec = dbnet("det_resnet18");
  spec.neck.out_channels = 16;
  spec.backbone.dcn = true;
  torch::manual_seed(3);
  const auto model = build_model(spec);
  // 27 outputs of a 3x3 convolution with bias, in two blocks of each stage.
  int64_t offsets = 0;
  for (const int64_t channels : {128, 256, 512}) offsets += 2 * 27 * (9 * channels + 1);
  spec.backbone.dcn = false;
  EXPECT_EQ(count_parameters(*model), count_parameters(*build_model(spec)) + offsets);
  const auto parameters = model->named_parameters();
  EXPECT_FALSE(parameters.contains("backbone.layer1.0.conv2_offset.weight"));
  EXPECT_EQ(parameters["backbone.layer2.0.conv2_offset.weight"].abs().sum().item<float>(), 0);
  model->forward(at::randn({2, 3, 64, 64})).square().sum().backward();
  EXPECT_GT(parameters["backbone.layer4.1.conv2_offset.weight"].grad().abs().sum().item<float>(),
            0);
}

}  // namespace
}  // namespace lockstep
