#include "lockstep/launch/agent/output/line_folder.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <map>
#include <random>

#include "lockstep/launch/process/line_prefix.h"

namespace lockstep {
namespace {

using namespace std::chrono_literals;
const LineFolder::Time kStart{};

/// "1[0-3]text" for each.
std::vector<std::string> shown(const std::vector<FoldedLine>& lines) {
  std::vector<std::string> all;
  for (const auto& line : lines) {
    all.push_back(fmt::format("{}[{}]{}", line.stream, compact_list(line.ranks), line.text));
  }
  return all;
}

using Shown = std::vector<std::string>;

TEST(LineFolder, WhatAllRanksPrintIsOneLineAtOnce) {
  LineFolder folder(4, true);
  for (const int rank : {2, 0, 3}) EXPECT_EQ(shown(folder.add(rank, 1, "a", kStart)), Shown{});
  EXPECT_EQ(shown(folder.add(1, 1, "a", kStart)), Shown{"1[0-3]a"});
  EXPECT_FALSE(folder.due());
}

TEST(LineFolder, AWindowLaterWhatSomePrintedComesOut) {
  LineFolder folder(8, true, 20ms);
  for (const int rank : {5, 4, 7, 6}) folder.add(rank, 2, "b", kStart);
  EXPECT_EQ(folder.due(), kStart + 20ms);
  EXPECT_EQ(shown(folder.pass_time(kStart + 19ms)), Shown{});
  EXPECT_EQ(shown(folder.pass_time(kStart + 20ms)), Shown{"2[4-7]b"});
}

TEST(LineFolder, TwoAreNotManyAndKeepTheirOwnLines) {
  LineFolder folder(4, true);
  folder.add(0, 1, "a", kStart);
  folder.add(1, 1, "a", kStart);
  EXPECT_EQ(shown(folder.flush()), (Shown{"1[0]a", "1[1]a"}));
}

TEST(LineFolder, OfTwoRanksAnErrorOfBothIsOneLine) {
  LineFolder two(2, true, 20ms);
  EXPECT_EQ(shown(two.add(0, 1, "a", kStart)), Shown{"1[0]a"});
  EXPECT_EQ(shown(two.add(1, 1, "a", kStart)), Shown{"1[1]a"});
  EXPECT_EQ(shown(two.add(1, 2, "no", kStart)), Shown{});
  EXPECT_TRUE(two.holds(2, "no"));
  EXPECT_EQ(shown(two.add(1, 1, "behind it", kStart)), Shown{});
  EXPECT_EQ(shown(two.add(0, 2, "no", kStart + 5ms)), (Shown{"2[0,1]no", "1[1]behind it"}));
  two.add(0, 2, "own", kStart);
  EXPECT_EQ(shown(two.pass_time(kStart + 20ms)), Shown{"2[0]own"});
}

TEST(LineFolder, ALineThatWaitedLongEnoughComesOutBeforeTheNextOne) {
  LineFolder two(2, true, 20ms);
  EXPECT_EQ(shown(two.add(0, 2, "own", kStart)), Shown{});
  EXPECT_EQ(shown(two.add(1, 1, "a", kStart + 20ms)), (Shown{"2[0]own", "1[1]a"}));
}

TEST(LineFolder, OneRankOrTheSwitchHoldNothingBack) {
  LineFolder one(1, true);
  EXPECT_EQ(shown(one.add(0, 2, "a", kStart)), Shown{"2[0]a"});
  LineFolder off(8, false);
  EXPECT_EQ(shown(off.add(7, 2, "a", kStart)), Shown{"2[7]a"});
  EXPECT_FALSE(off.due());
}

TEST(LineFolder, ARepeatedLineIsNotOne) {
  LineFolder folder(3, true);
  Shown all;
  for (int twice = 0; twice < 2; ++twice) {
    for (int rank = 0; rank < 3; ++rank) {
      for (const auto& line : shown(folder.add(rank, 1, "a", kStart))) all.push_back(line);
    }
  }
  EXPECT_EQ(all, (Shown{"1[0-2]a", "1[0-2]a"}));
}

TEST(LineFolder, StreamsAreNotMixed) {
  LineFolder folder(3, true);
  folder.add(0, 1, "a", kStart);
  folder.add(1, 2, "a", kStart);
  folder.add(2, 1, "a", kStart);
  EXPECT_EQ(shown(folder.flush()), (Shown{"1[0]a", "1[2]a", "2[1]a"}));
}

TEST(LineFolder, ALineThatWaitsHoldsUpOnlyWhatFollowsIt) {
  LineFolder folder(3, true, 20ms);
  folder.add(0, 1, "own", kStart);
  for (const int rank : {0, 1, 2}) EXPECT_EQ(shown(folder.add(rank, 1, "all", kStart)), Shown{});
  EXPECT_EQ(shown(folder.pass_time(kStart + 20ms)), (Shown{"1[0]own", "1[0-2]all"}));
}

TEST(LineFolder, NoMoreIsHeldThanStated) {
  LineFolder folder(3, true);
  size_t out = 0;
  const size_t lines = LineFolder::kMaxHeld + 10;
  for (size_t i = 0; i < lines; ++i) out += folder.add(0, 1, std::to_string(i), kStart).size();
  EXPECT_EQ(out, 10U);
  EXPECT_EQ(folder.flush().size(), LineFolder::kMaxHeld);
}

/// For any lines in any order: none is lost or invented, and each rank's order is kept.
TEST(LineFolder, EveryRanksLinesComeOutInTheirOrder) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    const int ranks = 2 + round % 4;
    LineFolder folder(ranks, true, 3ms);
    std::map<int, Shown> printed;
    std::map<int, Shown> seen;
    const auto see = [&](const std::vector<FoldedLine>& lines) {
      for (const auto& line : lines) {
        for (const int rank : line.ranks) {
          seen[rank].push_back(std::to_string(line.stream) + line.text);
        }
      }
    };
    for (int i = 0; i < 400; ++i) {
      const int rank = static_cast<int>(random() % static_cast<unsigned>(ranks));
      const int stream = 1 + static_cast<int>(random() % 2);
      const auto text = std::to_string(random() % 4);
      const auto now = kStart + std::chrono::microseconds((round < 25 ? 100 : 2000) * i);
      printed[rank].push_back(std::to_string(stream) + text);
      see(folder.add(rank, stream, text, now));
      if (random() % 10 == 0) see(folder.pass_time(now));
    }
    see(folder.flush());
    EXPECT_EQ(seen, printed);
  }
}

}  // namespace
}  // namespace lockstep
