#include "lockstep/types.h"
#include "lockstep/comm/kernels/element_types.h"

#include <gtest/gtest.h>

#include <set>

namespace lockstep {
namespace {

TEST(Types, EveryTypeHasASizeAndANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_GT(size_of(dtype), 0);
    EXPECT_TRUE(names.insert(to_string(dtype)).second);
  }
  EXPECT_FALSE(names.contains("unknown"));
  EXPECT_EQ(to_string(static_cast<DType>(kNumDTypes)), "unknown");
}

TEST(Types, EveryReductionHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int i = 0; i < kNumReduceOps; ++i) {
    EXPECT_TRUE(names.insert(to_string(static_cast<ReduceOp>(i))).second);
  }
  EXPECT_FALSE(names.contains("unknown"));
}

TEST(Types, EachKindHasItsReductions) {
  EXPECT_EQ(reductions_of(DType::kBool), "sum, min, max, product, band, bor, bxor");
  EXPECT_EQ(reductions_of(DType::kInt8), "sum, avg, min, max, product, band, bor, bxor");
  EXPECT_EQ(reductions_of(DType::kBFloat16), "sum, avg, min, max, product, premul_sum");
  EXPECT_EQ(reductions_of(DType::kComplex128), "sum, avg, premul_sum");
  EXPECT_FALSE(can_reduce(DType::kInt32, static_cast<ReduceOp>(kNumReduceOps)));
}

}  // namespace
}  // namespace lockstep
