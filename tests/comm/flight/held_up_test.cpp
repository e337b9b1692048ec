#include "lockstep/comm/flight/held_up.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "lockstep/error.h"

namespace lockstep {
namespace {

using Memberships = std::map<std::string, RankCalls::Membership>;

std::vector<int> first(int count) {
  std::vector<int> ranks(static_cast<size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

OpenCall in(const std::string& group, uint64_t sequence) {
  return {group, sequence, -1, "barrier #" + std::to_string(sequence), 100, 0, true};
}

/// Ranks 0 1 / 2 3; each calls its row, then its column. Rank 3 has not entered row 4.
std::vector<RankCalls> mesh() {
  return {
      {0, true, false, Memberships{{"row0", {0, 2, 4}}, {"col0", {0, 2, 4}}}, {in("col0", 4)}},
      {1, true, false, Memberships{{"row0", {1, 2, 5}}, {"col1", {0, 2, 4}}}, {in("row0", 5)}},
      {2, true, false, Memberships{{"row1", {0, 2, 4}}, {"col0", {1, 2, 3}}}, {in("row1", 4)}},
      {3, true, false, Memberships{{"row1", {1, 2, 3}}, {"col1", {1, 2, 4}}}, {}},
  };
}

TEST(HeldUp, AWaitLeadsThroughOtherGroupsToTheRankThatWaitsForNobody) {
  const auto found = held_up(mesh(), first(4), 1, "row0");
  EXPECT_EQ(found.awaited, std::vector<int>{0});
  EXPECT_EQ(found.roots, std::vector<int>{3});
  EXPECT_EQ(found.path, (std::vector<Hold>{{0, "barrier #4 of group col0", 2},
                                           {2, "barrier #4 of group row1", 3}}));
  EXPECT_EQ(to_string(found),
            "rank 3 holds up ranks 0, 2: rank 0 waits in barrier #4 of group col0 for rank 2; rank "
            "2 waits in barrier #4 of group row1 for rank 3");
}

TEST(HeldUp, NothingIsAddedWhereTheAwaitedRankIsTheOne) {
  const auto found = held_up(mesh(), first(4), 2, "row1");
  EXPECT_EQ(found.awaited, std::vector<int>{3});
  EXPECT_EQ(found.roots, std::vector<int>{3});
  EXPECT_EQ(to_string(found), "");
}

TEST(HeldUp, AWaitForOneRankLeadsOnFromThere) {
  auto all = mesh();
  all[0].open = {{"row0", 0, 1, "recv from 1", 150, 0, true}};
  all[1].open = {{"col1", 0, 1, "recv from 1", 100, 900, true}};  // it has timed out
  all[2].open = {{"col0", 0, 0, "recv from 0", 100, 0, true}};
  const auto found = held_up_by(all, first(4), 0, 120);
  EXPECT_EQ(found.awaited, std::vector<int>{0});
  EXPECT_EQ(found.roots, std::vector<int>{3});
  EXPECT_EQ(found.path, (std::vector<Hold>{{0, "recv from 1 of group row0", 1},
                                           {1, "recv from 1 of group col1", 3}}));
  EXPECT_EQ(held_up_by(all, first(4), 0, 901).roots, std::vector<int>{1});
  EXPECT_EQ(held_up_by(all, first(4), 3, 120).path, std::vector<Hold>{});
}

TEST(HeldUp, AnErrorOfACollectiveIsThatOfARankInItWhicheverRankTells) {
  auto all = mesh();
  all[3].open = {{"row1", 0, 0, "recv from 2", 150, 0, true}};  // rank 3 reports rank 2's barrier
  all[2].open.push_back({"row1", 0, 1, "recv from 3", 150, 0, true});
  EXPECT_EQ(held_up_in_collective(all, first(4), "row1"), held_up(all, first(4), 2, "row1"));
  EXPECT_EQ(held_up_in_collective(all, first(4), "row0"), held_up(all, first(4), 1, "row0"));
  EXPECT_FALSE(held_up_in_collective(all, first(4), "row0").path.empty());
  EXPECT_EQ(held_up_in_collective(all, first(4), "col1"), HeldUp());
}

TEST(HeldUp, AMessageWhoseTimeIsOverCountsUntilTheRankBeginsAnythingElse) {
  FlightRecord record;
  record.memberships["w"] = {0, 2};
  FlightEntry recv;
  recv.group = "w";
  recv.entered_ns = 100;
  recv.left_ns = 900;
  recv.failed = recv.went_on = true;
  record.entries = {recv};
  ASSERT_EQ(calls_of(record, "").open.size(), 1u);
  FlightEntry send;
  send.group = "w";
  send.entered_ns = 950;
  send.left_ns = 960;
  record.entries.push_back(send);
  EXPECT_TRUE(calls_of(record, "").open.empty());
}

TEST(HeldUp, ARankOfWhichThereIsNoWordMayBeTheOne) {
  auto all = mesh();
  all.pop_back();
  EXPECT_EQ(held_up(all, first(4), 1, "row0").roots, std::vector<int>{3});
  EXPECT_EQ(held_up(all, first(4), 2, "row1").awaited, std::vector<int>{3});
}

TEST(HeldUp, AStoppedRankIsTheOneThoughItIsInACall) {
  auto all = mesh();
  all[3].runs = false;
  all[3].groups["row1"].reached = 4;
  all[3].open = {in("col1", 4)};
  EXPECT_EQ(held_up(all, first(4), 1, "row0").roots, std::vector<int>{3});
}

TEST(HeldUp, ACallThatAnErrorEndedMeanwhileCountsAndAnOlderOneDoesNot) {
  auto all = mesh();
  all[2].open[0].left_ns = 101;  // the wait began at 100
  EXPECT_EQ(held_up(all, first(4), 1, "row0").roots, std::vector<int>{3});
  all[2].open[0].left_ns = 99;
  EXPECT_EQ(held_up(all, first(4), 1, "row0").roots, std::vector<int>{2});
}

TEST(HeldUp, RanksThatWaitForEachOtherAreToldApart) {
  auto all = mesh();
  all[3].groups["row1"].reached = 3;
  all[3].open = {in("col1", 5)};
  all[3].groups["col1"].reached = 5;  // reached by rank 1, which waits in row0
  const auto found = held_up(all, first(4), 1, "row0");
  EXPECT_TRUE(found.roots.empty());
  EXPECT_TRUE(to_string(found).starts_with("ranks 0-3 wait for each other: rank 0 waits in"))
      << to_string(found);
}

TEST(HeldUp, ATransferWaitsForItsPeer) {
  auto all = mesh();
  all[2].open = {{"row1", 0, 1, "recv from 1", 100, 0, false}};
  EXPECT_EQ(held_up(all, first(4), 2, "row1").awaited, std::vector<int>{3});
  EXPECT_EQ(held_up(all, first(4), 1, "row0").roots, std::vector<int>{3});
}

TEST(HeldUp, WhoComputesBesideCallsThatItNeedNotWaitForIsTheOne) {
  auto all = mesh();
  all[2].open = {{"row1", 0, 1, "recv from 1", 100, 0, false}};
  all[2].computes = true;
  EXPECT_EQ(held_up(all, first(4), 1, "row0").roots, std::vector<int>{2});
  all[2].open.push_back(in("row1", 4));  // waits, whatever its other threads do
  EXPECT_EQ(held_up(all, first(4), 1, "row0").roots, std::vector<int>{3});
}

TEST(HeldUp, WhoWaitsForDataIsNotTheOne) {
  auto all = mesh();
  all[3].groups["row1"].reached = 4;  // all of row1 are in it
  all[3].open = {in("row1", 4)};
  const auto found = held_up(all, first(4), 1, "row0");
  EXPECT_TRUE(found.roots.empty()) << found.roots.size();
}

TEST(HeldUp, AHostThatIsSlowToTellIsNotBlamedWhereSomebodyElseIsLate) {
  auto all = mesh();
  EXPECT_EQ(held_up(all, first(8), 1, "row0").roots, std::vector<int>{3});
}

TEST(HeldUp, WhoIsInNoCallOfTheGroupIsHeldUpByNobody) {
  const auto found = held_up(mesh(), first(4), 3, "row1");
  EXPECT_TRUE(found.awaited.empty());
  EXPECT_EQ(to_string(found), "");
}

TEST(HeldUp, TravelsBetweenHosts) {
  const auto text = encode_rank_calls(mesh());
  EXPECT_EQ(encode_rank_calls(decode_rank_calls(text)), text);
  EXPECT_EQ(held_up(decode_rank_calls(text), first(4), 1, "row0").roots, std::vector<int>{3});
  for (const char* const garbage :
       {"", "7", "[7]", "[[0,true,false,[[1]],[]]]", "[[0,1,true,[],[]]]"}) {
    EXPECT_THROW(decode_rank_calls(garbage), Error) << garbage;
  }
}

}  // namespace
}  // namespace lockstep
