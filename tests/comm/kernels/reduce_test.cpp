#include "lockstep/comm/kernels/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tests/comm/support/values.h"

namespace lockstep {
namespace {

using testing::Bytes;

std::vector<InstructionSet> sets() {
  std::vector<InstructionSet> all;
  for (int i = 0; i <= static_cast<int>(best_instruction_set()); ++i) {
    all.push_back(static_cast<InstructionSet>(i));
  }
  return all;
}

std::vector<Bytes> run(InstructionSet set, const std::vector<Bytes>& ins, int num_outs, DType dtype,
                       ReduceOp op, bool in_place) {
  std::vector<Bytes> copies = ins;
  std::vector<Bytes> outs(static_cast<size_t>(num_outs), Bytes(ins[0].size()));
  std::vector<const void*> from;
  std::vector<void*> to;
  for (auto& one : copies) from.push_back(one.data());
  for (auto& one : in_place ? copies : outs) to.push_back(one.data());
  const auto count = static_cast<int64_t>(ins[0].size()) / size_of(dtype);
  reduce_with(set, from, to, count, dtype, op, static_cast<int>(ins.size()));
  return in_place ? copies : outs;
}

TEST(Reduce, EveryInstructionSetGivesTheBitsOfTheTree) {
  for (const int num : {1, 2, 3, 4, 5, 8, 9}) {
    for (const DType dtype : testing::all_dtypes()) {
      for (const int64_t count : {0, 1, 15, 64, 203}) {
        std::vector<Bytes> ins;
        for (int k = 0; k < num; ++k) ins.push_back(testing::make_values(dtype, count, k, 5));
        for (const ReduceOp op : testing::ops_of(dtype)) {
          const Bytes want = testing::reference(dtype, op, ins);
          for (const InstructionSet set : sets()) {
            for (const bool in_place : {false, true}) {
              for (const auto& got : run(set, ins, num == 2 ? 1 : num, dtype, op, in_place)) {
                ASSERT_EQ(got, want) << num << " x " << count << " " << to_string(dtype) << " "
                                     << to_string(op) << " " << to_string(set);
              }
            }
          }
        }
      }
    }
  }
}

// All 65536 values of the two-byte floats against a fixed partner: subnormals, infinities,
// rounding.
TEST(Reduce, HalfFloatsRoundAlikeEverywhere) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    for (const uint16_t partner : {0x0000, 0x8000, 0x0001, 0x03ff, 0x0400, 0x3555, 0x7bff, 0xfbff,
                                   0x7c00, 0x3f80, 0x7f7f, 0xff80}) {
      std::vector<Bytes> ins(2, Bytes(2 << 16));
      for (int i = 0; i < 1 << 16; ++i) {
        const auto value = static_cast<uint16_t>(i);
        std::memcpy(ins[0].data() + 2 * i, &value, 2);
        std::memcpy(ins[1].data() + 2 * i, &partner, 2);
      }
      for (const ReduceOp op : testing::ops_of(dtype)) {
        const Bytes want = testing::reference(dtype, op, ins);
        for (const InstructionSet set : sets()) {
          const Bytes got = run(set, ins, 1, dtype, op, false)[0];
          for (int i = 0; i < 1 << 16; ++i) {
            const double expected = testing::element_as_double(dtype, want, i);
            if (std::isnan(expected)) {
              ASSERT_TRUE(std::isnan(testing::element_as_double(dtype, got, i))) << i;
            } else {
              ASSERT_EQ(std::memcmp(got.data() + 2 * i, want.data() + 2 * i, 2), 0)
                  << to_string(dtype) << " " << to_string(op) << " " << to_string(set) << " " << i
                  << " with " << partner;
            }
          }
        }
      }
    }
  }
}

TEST(Reduce, NanWinsFromEitherSideInMinAndMax) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> a = {nan, 1, nan, -INFINITY, 2};
  const std::vector<float> b = {1, nan, nan, 3, 2};
  for (const InstructionSet set : sets()) {
    for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
      std::vector<float> out(5);
      const void* const ins[] = {a.data(), b.data()};
      void* const outs[] = {out.data()};
      reduce_with(set, ins, outs, 5, DType::kFloat32, op, 2);
      EXPECT_TRUE(std::isnan(out[0]) && std::isnan(out[1]) && std::isnan(out[2]));
      EXPECT_EQ(out[3], op == ReduceOp::kMin ? -INFINITY : 3);
      EXPECT_EQ(out[4], 2);
    }
  }
}

TEST(Scale, MultipliesAndRoundsOnceOnEveryInstructionSet) {
  constexpr double kFactor = 0.3;
  for (const InstructionSet set : sets()) {
    for (const int64_t count : {0, 1, 77}) {
      const Bytes in = testing::make_values(DType::kComplex64, count, 0, 3);
      Bytes out(in.size());
      scale_with(set, in.data(), out.data(), count, DType::kComplex64, kFactor);
      for (int64_t i = 0; i < 2 * count; ++i) {
        const double value = testing::element_as_double(DType::kFloat32, in, i);
        EXPECT_EQ(testing::element_as_double(DType::kFloat32, out, i),
                  static_cast<float>(value) * static_cast<float>(kFactor));
      }
      Bytes halves = testing::make_values(DType::kBFloat16, count, 0, 3);
      const Bytes before = halves;
      scale_with(set, halves.data(), halves.data(), count, DType::kBFloat16, kFactor);
      for (int64_t i = 0; i < count; ++i) {
        const auto value =
            static_cast<float>(testing::element_as_double(DType::kBFloat16, before, i));
        EXPECT_EQ(testing::element_as_double(DType::kBFloat16, halves, i),
                  testing::float_from_bfloat16(
                      testing::bfloat16_from_float(value * static_cast<float>(kFactor))));
      }
    }
  }
}

TEST(Reduce, DivideIsTheEndOfAverage) {
  std::vector<int32_t> numbers = {7, -7, 9, -1};
  divide(numbers.data(), 4, DType::kInt32, 2);
  EXPECT_EQ(numbers, (std::vector<int32_t>{3, -3, 4, 0}));
  std::vector<float> floats = {1, 2, 10};
  divide(floats.data(), 3, DType::kFloat32, 3);
  EXPECT_EQ(floats, (std::vector<float>{1.0f / 3, 2.0f / 3, 10.0f / 3}));
}

}  // namespace
}  // namespace lockstep
