#include "lockstep/launch/agent/output/worker_lines.h"

#include <gtest/gtest.h>

#include "lockstep/launch/agent/output/line_prefix.h"
#include "lockstep/launch/agent/output/line_rate.h"

namespace lockstep {
namespace {

using namespace std::chrono_literals;
const LineRate::Time kEpoch = LineRate::Time{} + 1h;

TEST(LineRate, AsManyAtOnceAsASecondAllows) {
  LineRate rate(10);
  int shown = 0;
  for (int i = 0; i < 25; ++i) shown += rate.line(kEpoch).show ? 1 : 0;
  EXPECT_EQ(shown, 10);
  const auto later = rate.line(kEpoch + 500ms);
  EXPECT_TRUE(later.show);
  EXPECT_EQ(later.dropped, 15);
  EXPECT_EQ(rate.line(kEpoch + 500ms).dropped, 0);
}

TEST(LineRate, WhatIsDroppedIsToldInBatches) {
  LineRate rate(100);
  int told = 0;
  for (int i = 0; i < 2000; ++i) told += rate.line(kEpoch + i * 1ms).dropped > 0 ? 1 : 0;
  EXPECT_GT(told, 5);
  EXPECT_LT(told, 40) << "not between any two lines";
}

TEST(LineRate, ZeroIsNoLimit) {
  LineRate rate(0);
  for (int i = 0; i < 100000; ++i) ASSERT_TRUE(rate.line(kEpoch).show);
  EXPECT_EQ(rate.take_dropped(), 0);
}

TEST(LinePrefix, NamesRanksAndHosts) {
  PrefixStyle style;
  style.world_size = 16;
  EXPECT_EQ(line_prefix(style, {3}), "[3]  ");
  EXPECT_EQ(line_prefix(style, {12}), "[12] ");
  EXPECT_EQ(line_prefix(style, {0, 1, 2, 3}), "[0-3] ");
  style.first_rank = 8;
  style.host = "a1";
  style.host_width = 4;
  EXPECT_EQ(line_prefix(style, {0}), "[a1:8]    ");
  EXPECT_EQ(line_prefix(style, {0, 2, 3, 4, 6}), "[a1:8,10-12,14] ");
}

TEST(LinePrefix, TorchrunsTemplate) {
  PrefixStyle style;
  style.first_rank = 4;
  style.role = "trainer";
  style.pattern = "[${role_name}${local_rank}|${rank}]:";
  EXPECT_EQ(line_prefix(style, {1}), "[trainer1|5]:");
}

TEST(LinePrefix, ColourOnlyWhereItIsWanted) {
  PrefixStyle style;
  style.color = true;
  const auto colored = line_prefix(style, {0});
  EXPECT_EQ(colored.substr(0, 2), "\x1b[");
  EXPECT_NE(colored.find("[0] \x1b[0m"), std::string::npos);
  EXPECT_TRUE(wants_color(true, nullptr, "xterm"));
  EXPECT_TRUE(wants_color(true, "", "xterm"));
  EXPECT_FALSE(wants_color(true, "1", "xterm"));
  EXPECT_FALSE(wants_color(false, nullptr, "xterm"));
  EXPECT_FALSE(wants_color(true, nullptr, "dumb"));
  EXPECT_FALSE(wants_color(true, nullptr, nullptr));
}

TEST(CompactList, JoinsRunsOfThree) {
  EXPECT_EQ(compact_list({0}), "0");
  EXPECT_EQ(compact_list({0, 1}), "0,1");
  EXPECT_EQ(compact_list({0, 1, 2}), "0-2");
  EXPECT_EQ(compact_list({0, 2, 3, 4, 9, 10}), "0,2-4,9,10");
}

}  // namespace
}  // namespace lockstep
