#include "lockstep/amp/gradients.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <limits>

namespace lockstep {
namespace {

using torch::Tensor;

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(Gradients, OneValueThatIsNoNumberIsFound) {
  for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble}) {
    for (const double bad : {kInf, -kInf, std::nan("")}) {
      std::vector<Tensor> list = {torch::ones({3, 5}, dtype), Tensor(), torch::ones({1000}, dtype)};
      EXPECT_TRUE(all_finite(list));
      list[2][777] = bad;
      EXPECT_FALSE(all_finite(list)) << toString(dtype) << " " << bad;
    }
  }
  EXPECT_FALSE(all_finite(std::vector<Tensor>{torch::tensor({kInf, -kInf})}));
  EXPECT_TRUE(all_finite({}));
}

// A sum in float32 drops imaginary parts.
TEST(Gradients, ABadImaginaryPartIsFound) {
  for (const auto dtype : {at::kFloat, at::kDouble}) {
    for (const double bad : {kInf, -kInf, std::nan("")}) {
      const Tensor good = torch::ones({1}, dtype), wrong = torch::full({1}, bad, dtype);
      EXPECT_TRUE(all_finite(std::vector<Tensor>{torch::complex(good, good)}));
      EXPECT_FALSE(all_finite(std::vector<Tensor>{torch::complex(good, wrong)})) << bad;
      EXPECT_FALSE(all_finite(std::vector<Tensor>{torch::complex(good, wrong).conj()})) << bad;
      EXPECT_FALSE(all_finite(std::vector<Tensor>{torch::complex(wrong, good)})) << bad;
    }
  }
}

// Their sums are infinite.
TEST(Gradients, LargeNumbersAreNumbers) {
  EXPECT_TRUE(all_finite(std::vector<Tensor>{torch::full({16}, 3e38, at::kFloat)}));
  EXPECT_TRUE(all_finite(std::vector<Tensor>(2, torch::full({1}, 3e38, at::kFloat))));
  EXPECT_TRUE(all_finite(std::vector<Tensor>{torch::full({64}, 65504, at::kHalf)}));
  EXPECT_TRUE(all_finite(std::vector<Tensor>{torch::full({2}, 1e300, at::kDouble)}));
}

TEST(Gradients, UnscaleDividesWhereThereAreGradients) {
  std::vector<Tensor> parameters = {torch::ones({2}).requires_grad_(),
                                    torch::ones({2}).requires_grad_()};
  parameters[0].mutable_grad() = torch::tensor({512.0F, -3.0F});
  const auto gradients = gradients_of(parameters);
  ASSERT_EQ(gradients.size(), 1u);
  unscale(gradients, 1024);
  EXPECT_TRUE(parameters[0].grad().equal(torch::tensor({0.5F, -3.0F / 1024})));
}

}  // namespace
}  // namespace lockstep
