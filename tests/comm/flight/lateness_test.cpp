#include "lockstep/comm/flight/lateness.h"

#include <gtest/gtest.h>

#include <random>

namespace lockstep {
namespace {

/// Two ranks of group "w" at collectives [1, count]. Each works `own_ms(rank, number)` and then
/// waits for the other; a collective takes 1 ms once both are there.
template <class OwnMs>
std::vector<FlightRecord> working(uint64_t count, const OwnMs& own_ms, int ranks = 2) {
  std::vector<FlightRecord> records(static_cast<size_t>(ranks));
  int64_t left_ns = 1'000'000'000;
  for (uint64_t number = 1; number <= count; ++number) {
    int64_t last_ns = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      FlightRecord& record = records[static_cast<size_t>(rank)];
      record.rank = rank;
      record.size = ranks;
      record.groups = {"w"};
      FlightEntry entry;
      entry.call = "barrier";
      entry.group = "w";
      entry.sequence = number;
      entry.entered_ns = left_ns + static_cast<int64_t>(own_ms(rank, number) * 1e6);
      last_ns = std::max(last_ns, entry.entered_ns);
      record.entries.push_back(entry);
    }
    left_ns = last_ns + 1'000'000;
    for (FlightRecord& record : records) record.entries.back().left_ns = left_ns;
  }
  return records;
}

double late_by_5(int rank, uint64_t) {
  return rank == 1 ? 10 : 5;
}

TEST(Lateness, ComparesTheCollectivesThatAllHave) {
  auto records = working(50, late_by_5);
  records[0].entries.erase(records[0].entries.begin() + 40, records[0].entries.end());
  records[1].entries.erase(records[1].entries.begin(), records[1].entries.begin() + 10);
  auto other = records[1];
  other.rank = 2;
  other.groups = {"v"};
  records.push_back(other);
  const auto arrivals = arrivals_in(records, "w");
  const auto& ranks = arrivals.ranks;
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[0].collectives, 30);
  EXPECT_EQ(ranks[0].mean_ms, 0);
  EXPECT_EQ(ranks[0].last, 0);
  EXPECT_EQ(ranks[1].rank, 1);
  EXPECT_NEAR(ranks[1].mean_ms, 5, 1e-6);
  EXPECT_NEAR(ranks[1].most_ms, 5, 1e-6);
  EXPECT_EQ(ranks[1].last, 30);
  EXPECT_NEAR(ranks[0].own_ms, 5, 1e-6) << "it waited for the rest";
  EXPECT_NEAR(ranks[1].own_ms, 10 * 29.0 / 30, 1e-6) << "what came before the first is not known";
  EXPECT_EQ(arrivals.end_ns - arrivals.begin_ns, 29 * 11'000'000);
  EXPECT_EQ(arrivals.slowest, 1);
  EXPECT_TRUE(arrivals_in({}, "w").ranks.empty());
}

TEST(Lateness, MomentsOfAGarbledRecorderDoNotOverflow) {
  auto records = working(10, late_by_5);
  for (auto& entry : records[0].entries) entry.entered_ns = -(int64_t{1} << 62);
  for (auto& entry : records[1].entries) entry.entered_ns = int64_t{1} << 62;
  const auto arrivals = arrivals_in(records, "w");
  EXPECT_NEAR(arrivals.ranks[1].mean_ms, 9223372036854.775, 1);
  EXPECT_NE(lateness_table(arrivals, 1), "");
}

TEST(Lateness, TransfersAreNoArrivals) {
  auto records = working(10, late_by_5);
  for (auto& entry : records[0].entries) entry.sequence = 0;
  EXPECT_EQ(arrivals_in(records, "w").ranks[1].collectives, 0);
}

// Some rank is always last, and by much on a busy machine.
TEST(Lateness, NobodyIsAccusedInACalmRun) {
  std::mt19937 random(1);
  for (int run = 0; run < 200; ++run) {
    std::lognormal_distribution<double> own(2, 0.5);
    const auto arrivals =
        arrivals_in(working(200, [&](int, uint64_t) { return own(random); }), "w");
    EXPECT_EQ(arrivals.slowest, -1) << run;
  }
}

TEST(Lateness, TheSlowestWorksMoreByItselfAndDoesSoStill) {
  const auto slow_from = [](uint64_t from, uint64_t to, double factor) {
    return arrivals_in(working(
                           200,
                           [=](int rank, uint64_t number) {
                             return rank == 2 && number >= from && number < to ? 10 * factor : 10.0;
                           },
                           4),
                       "w")
        .slowest;
  };
  EXPECT_EQ(slow_from(1, 1000, 2), 2);
  EXPECT_EQ(slow_from(100, 1000, 1.6), 2);
  EXPECT_EQ(slow_from(1, 1000, 1.4), -1) << "not enough";
  EXPECT_EQ(slow_from(1, 100, 3), -1) << "over";
  EXPECT_EQ(slow_from(195, 1000, 3), -1) << "a moment";
}

TEST(Lateness, ThreePartsInARow) {
  EXPECT_EQ(slow_in_a_row({{1, 2}, {1, 2}, {1, 2}}), 1);
  EXPECT_EQ(slow_in_a_row({{2, 1}, {1, 2}, {1, 2}, {1, 2}}), 1);
  EXPECT_EQ(slow_in_a_row({{1, 2}, {1, 1}, {1, 2}}), -1);
  EXPECT_EQ(slow_in_a_row({{1, 2}, {2, 1}, {1, 2}}), -1);
  EXPECT_EQ(slow_in_a_row({{1, 2}, {1, 2}}), -1);
  EXPECT_EQ(slow_in_a_row({{0.01, 0.05}, {0.01, 0.05}, {0.01, 0.05}}), -1) << "the price of a turn";
  EXPECT_EQ(slow_in_a_row({}), -1);
}

TEST(Lateness, TableNamesTheSlowestAndTheTime) {
  Arrivals arrivals;
  arrivals.ranks = {{0, 400, 0.11, 3, 12, 4.1}, {1, 400, 35.2, 40, 388, 39.2}};
  arrivals.begin_ns = 1'000'000'000;
  arrivals.end_ns = 42'300'000'000;
  arrivals.slowest = 1;
  EXPECT_EQ(lateness_table(arrivals, 42'500'000'000),
            "  arrivals at the last 400 collectives, in 41.3 s until 0.2 s ago\n"
            "   rank   mean late   most late   last in    own time\n"
            "      0      0.1 ms      3.0 ms       3 %      4.1 ms\n"
            "      1     35.2 ms     40.0 ms      97 %     39.2 ms  <- slowest\n");
  for (Lateness& rank : arrivals.ranks) rank.collectives = kFewestArrivals - 1;
  EXPECT_EQ(lateness_table(arrivals, 0), "");
  arrivals.ranks.resize(1);
  arrivals.ranks[0].collectives = 400;
  EXPECT_EQ(lateness_table(arrivals, 0), "");
}

TEST(Lateness, IsPartOfTheGroupsTable) {
  const std::string text = flight_table(working(40, late_by_5), 2'000'000'000);
  EXPECT_NE(text.find("arrivals at the last 40 collectives, in 0.4 s until 0.6 s ago"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("5.0 ms     100 %      9.8 ms  <- slowest"), std::string::npos) << text;
}

}  // namespace
}  // namespace lockstep
