#include "lockstep/base/number.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace lockstep {
namespace {

TEST(Number, IsTheWholeText) {
  EXPECT_EQ(as_number<int>("-12"), -12);
  EXPECT_EQ(as_number<int>("007"), 7);
  EXPECT_EQ(as_number<uint64_t>("ff", 16), 255U);
  EXPECT_EQ(as_number<double>("2.5e1"), 25.0);
  for (const auto* text : {"", " 1", "1 ", "+1", "1x", "x", "99999999999"}) {
    EXPECT_EQ(as_number<int>(text), std::nullopt) << text;
  }
  EXPECT_EQ(as_number<uint64_t>("-1"), std::nullopt);
}

TEST(Number, AllDigitsNeedsOne) {
  EXPECT_TRUE(all_digits("0123456789"));
  for (const auto* text : {"", "-1", "1.0", "1 "}) EXPECT_FALSE(all_digits(text)) << text;
}

}  // namespace
}  // namespace lockstep
