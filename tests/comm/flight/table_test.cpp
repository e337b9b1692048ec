#include <gtest/gtest.h>

#include "lockstep/comm/flight/record.h"

namespace lockstep {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

FlightRecord rank_at(int rank, uint64_t sequence, bool inside, const std::string& call) {
  FlightRecord record;
  record.rank = rank;
  record.size = 4;
  record.pid = 4000 + rank;
  record.groups = {"w"};
  for (uint64_t i = 1; i <= sequence; ++i) {
    FlightEntry entry;
    entry.call = i == sequence ? call : "barrier";
    entry.group = "w";
    entry.sequence = i;
    entry.count = 25 << 18;
    entry.bytes = 25 << 20;
    entry.dtype = "float32";
    entry.site = call + ".cpp:88";
    entry.entered_ns = static_cast<int64_t>(i) * kSecond;
    entry.left_ns = inside && i == sequence ? 0 : entry.entered_ns + kSecond / 2;
    record.entries.push_back(entry);
  }
  return record;
}

TEST(FlightTable, MarksWhoIsOdd) {
  auto dead = rank_at(2, 4, true, "all_reduce");
  dead.alive = false;
  const std::string text =
      flight_table({dead, rank_at(0, 5, true, "all_reduce"), rank_at(1, 5, true, "broadcast"),
                    rank_at(3, 5, true, "all_reduce")},
                   15 * kSecond);
  // clang-format off
  EXPECT_EQ(text,
            "group w\n"
            "   rank       pid  last operation                     called at          state\n"
            "      0      4000  all_reduce #5 (float32, 25.0 MiB)  all_reduce.cpp:88  inside for 10.0 s\n"
            "      1      4001  broadcast #5 (float32, 25.0 MiB)   broadcast.cpp:88   inside for 10.0 s     <- another call than most\n"
            "      2      4002  all_reduce #4 (float32, 25.0 MiB)  all_reduce.cpp:88  inside for 11.0 s     <- dead, 1 behind\n"
            "      3      4003  all_reduce #5 (float32, 25.0 MiB)  all_reduce.cpp:88  inside for 10.0 s\n");
  // clang-format on
}

TEST(FlightTable, WhoHasEndedWellIsDone) {
  std::vector<FlightRecord> records = {rank_at(0, 5, false, "barrier"),
                                       rank_at(1, 5, false, "barrier"),
                                       rank_at(2, 5, false, "barrier")};
  for (FlightRecord& record : records) record.alive = false;
  records[0].exit_code = 0;
  records[1].exit_code = 3;
  const std::string text = flight_table(records, 15 * kSecond);
  EXPECT_NE(text.find("done 9.5 s ago, ended\n"), std::string::npos) << text;
  EXPECT_NE(text.find("<- ended with exit code 3\n"), std::string::npos) << text;
  EXPECT_NE(text.find("<- dead\n"), std::string::npos) << text;
}

// As when one rank loads the data that it broadcasts.
TEST(FlightTable, TheSameCallAtAnotherPlaceIsNotOdd) {
  auto elsewhere = rank_at(1, 5, true, "all_reduce");
  elsewhere.entries.back().site = "main.cpp:7";
  const std::string text = flight_table(
      {rank_at(0, 5, true, "all_reduce"), elsewhere, rank_at(2, 5, true, "all_reduce")},
      15 * kSecond);
  EXPECT_NE(text.find("main.cpp:7"), std::string::npos) << text;
  EXPECT_EQ(text.find("<-"), std::string::npos) << text;
}

TEST(FlightTable, SaysWhatTheProcessOfAnOddRankDoes) {
  auto stopped = rank_at(0, 5, true, "all_reduce");
  stopped.process = "stopped";
  auto behind = rank_at(1, 4, false, "all_reduce");
  behind.process = "running";
  auto usual = rank_at(2, 5, true, "all_reduce");
  usual.process = "sleeping";
  const std::string text = flight_table({stopped, behind, usual}, 15 * kSecond);
  EXPECT_NE(text.find("<- stopped\n"), std::string::npos) << text;
  EXPECT_NE(text.find("<- 1 behind, running\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("sleeping"), std::string::npos) << text;
}

// Recorders are read one after the other, and ranks of a normal run continue meanwhile.
TEST(FlightTable, WhoseNextCallHasJustBegunIsNotBehind) {
  auto before = rank_at(1, 4, false, "all_reduce");
  before.process = "sleeping";
  const std::vector<FlightRecord> records = {rank_at(0, 5, true, "barrier"), before};
  EXPECT_EQ(flight_table(records, 5 * kSecond + kSecond / 2).find("<-"), std::string::npos);
  EXPECT_TRUE(odd_ranks(records, 5 * kSecond + kSecond / 2).empty());
  EXPECT_EQ(odd_ranks(records, 6 * kSecond), std::vector<int>{1});
}

// Rank 0 continues, like a rank that sends without waiting.
TEST(FlightTable, WhoLeavesOutCallsIsBehindThoughOthersGoOn) {
  const std::vector<FlightRecord> records = {rank_at(0, 9, true, "broadcast"),
                                             rank_at(1, 4, false, "broadcast")};
  EXPECT_NE(flight_table(records, 9 * kSecond).find("<- 5 behind"), std::string::npos);
}

// No look is needed at a rank that waits like most, nor at a dead one.
TEST(FlightTable, OfOddRanksItShowsTheStack) {
  auto behind = rank_at(1, 4, false, "all_reduce");
  auto dead = rank_at(2, 4, false, "all_reduce");
  dead.alive = false;
  std::vector<FlightRecord> records = {rank_at(0, 5, true, "all_reduce"), behind, dead,
                                       rank_at(3, 5, true, "all_reduce")};
  EXPECT_EQ(odd_ranks(records, 15 * kSecond), std::vector<int>{1});
  records[1].stack = "pause < main";
  const std::string text = flight_table(records, 15 * kSecond);
  EXPECT_TRUE(text.ends_with("\nstack of rank 1: pause < main\n")) << text;
}

TEST(FlightTable, SaysWhoIsMissingAndWhoDidNothing) {
  const std::string text = flight_table({rank_at(1, 0, false, "")}, 1);
  EXPECT_NE(text.find("nothing yet"), std::string::npos) << text;
  EXPECT_NE(text.find("no record of ranks 0, 2, 3"), std::string::npos) << text;
}

TEST(FlightTable, OneThatIsMissingIsOne) {
  const std::string text = flight_table(
      {rank_at(1, 0, false, ""), rank_at(2, 0, false, ""), rank_at(3, 0, false, "")}, 1);
  EXPECT_NE(text.find("no record of rank 0\n"), std::string::npos) << text;
}

TEST(FlightTable, ShowsTransfersUnderWay) {
  auto record = rank_at(1, 1, false, "barrier");
  FlightEntry entry = record.entries[0];
  entry.call = "recv";
  entry.sequence = 0;
  entry.left_ns = 0;
  entry.peer = 3;
  record.entries.push_back(entry);
  record.entries.push_back(entry);
  record.entries.back().site = "";
  const std::string text = flight_table({record}, 3 * kSecond);
  for (const char* transfer : {"rank 1: recv from 3 (float32, 25.0 MiB), inside for 2.0 s\n",
                               "recv from 3 (float32, 25.0 MiB) at barrier.cpp:88, inside for"}) {
    EXPECT_NE(text.find(transfer), std::string::npos) << text;
  }
  EXPECT_NE(text.find("barrier #1 (float32, 25.0 MiB)"), std::string::npos) << text;
}

}  // namespace
}  // namespace lockstep
