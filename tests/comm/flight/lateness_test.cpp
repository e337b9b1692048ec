#include "lockstep/comm/flight/lateness.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

/// Collectives [first, last] of group "w", `late_ms` after their time of 100 ms each.
FlightRecord arriving(int rank, uint64_t first, uint64_t last, double late_ms) {
  FlightRecord record;
  record.rank = rank;
  record.size = 2;
  record.groups = {"w"};
  for (uint64_t i = first; i <= last; ++i) {
    FlightEntry entry;
    entry.call = "barrier";
    entry.group = "w";
    entry.sequence = i;
    entry.entered_ns = static_cast<int64_t>(i) * 100'000'000 + static_cast<int64_t>(late_ms * 1e6);
    entry.left_ns = entry.entered_ns + 1;
    record.entries.push_back(entry);
  }
  return record;
}

TEST(Lateness, ComparesTheCollectivesThatAllHave) {
  auto other = arriving(2, 1, 50, 99);
  other.groups = {"v"};
  const auto ranks = lateness_in({arriving(0, 1, 40, 0), arriving(1, 11, 50, 5), other}, "w");
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[0].collectives, 30);
  EXPECT_EQ(ranks[0].mean_ms, 0);
  EXPECT_EQ(ranks[0].last, 0);
  EXPECT_EQ(ranks[1].rank, 1);
  EXPECT_NEAR(ranks[1].mean_ms, 5, 1e-6);
  EXPECT_NEAR(ranks[1].most_ms, 5, 1e-6);
  EXPECT_EQ(ranks[1].last, 30);
  EXPECT_TRUE(lateness_in({}, "w").empty());
}

TEST(Lateness, MomentsOfAGarbledRecorderDoNotOverflow) {
  auto early = arriving(0, 1, 10, 0);
  auto late = arriving(1, 1, 10, 0);
  for (auto& entry : early.entries) entry.entered_ns = -(int64_t{1} << 62);
  for (auto& entry : late.entries) entry.entered_ns = int64_t{1} << 62;
  EXPECT_NEAR(lateness_in({early, late}, "w")[1].mean_ms, 9223372036854.775, 1);
}

TEST(Lateness, TransfersAreNoArrivals) {
  auto record = arriving(0, 1, 10, 0);
  for (auto& entry : record.entries) entry.sequence = 0;
  EXPECT_EQ(lateness_in({record, arriving(1, 1, 10, 3)}, "w")[1].collectives, 0);
}

TEST(Lateness, TheSlowestIsOneThatIsUsuallyLastAndNoticeably) {
  EXPECT_EQ(slowest({{0, 10, 0, 0, 0}, {1, 10, 5, 9, 9}}), 1);
  EXPECT_EQ(slowest({{0, 10, 2, 9, 5}, {1, 10, 2, 9, 5}}), -1);
  EXPECT_EQ(slowest({{0, 10, 0, 0, 0}, {1, 10, 0.05, 0.2, 10}}), -1);
  EXPECT_EQ(slowest({}), -1);
}

TEST(Lateness, TableNamesTheSlowest) {
  EXPECT_EQ(lateness_table({{0, 400, 0.11, 3, 12}, {1, 400, 35.2, 40, 388}}),
            "  arrivals at the last 400 collectives\n"
            "   rank   mean late   most late   last in\n"
            "      0      0.1 ms      3.0 ms       3 %\n"
            "      1     35.2 ms     40.0 ms      97 %  <- slowest\n");
  EXPECT_EQ(lateness_table({{0, kFewestArrivals - 1, 0, 0, 0}, {1, 7, 5, 5, 7}}), "");
  EXPECT_EQ(lateness_table({{0, 400, 0, 0, 400}}), "");
}

TEST(Lateness, IsPartOfTheGroupsTable) {
  const std::string text = flight_table({arriving(0, 1, 20, 0), arriving(1, 1, 20, 5)}, 1);
  EXPECT_NE(text.find("arrivals at the last 20 collectives"), std::string::npos) << text;
  EXPECT_NE(text.find("5.0 ms     100 %  <- slowest"), std::string::npos) << text;
}

}  // namespace
}  // namespace lockstep
