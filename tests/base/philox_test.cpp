#include "lockstep/base/philox.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

// The published vectors: Random123, tests/kat_vectors, "philox4x32 10".
TEST(Philox, GivesThePublishedVectors) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, StreamIsTheBlocksInOrder) {
  Philox stream(/*seed=*/(uint64_t{7} << 32) | 5, /*round=*/3, /*item=*/(uint64_t{2} << 32) | 1);
  for (const uint32_t block : {0U, 1U, 2U}) {
    for (const uint32_t word : philox4x32({1, 2, 3, block}, {5, 7})) EXPECT_EQ(stream.next(), word);
  }
}

TEST(Philox, NumbersStayInRangeAndReachItsEnds) {
  Philox stream(1, 0, 0);
  std::array<int, 9> seen{};
  double sum = 0;
  for (int i = 0; i < 9000; ++i) {
    ++seen.at(static_cast<size_t>(stream.below(9)));
    const double u = stream.uniform();
    ASSERT_TRUE(u >= 0 && u < 1);
    sum += u;
  }
  for (const int count : seen) EXPECT_NEAR(count, 1000, 150);
  EXPECT_NEAR(sum / 9000, 0.5, 0.02);
}

}  // namespace
}  // namespace lockstep
