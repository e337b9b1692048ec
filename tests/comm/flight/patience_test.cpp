#include "lockstep/comm/flight/patience.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

namespace lockstep {
namespace {

constexpr int64_t kSec = 1'000'000'000;
constexpr uint16_t kGroup = 3;

/// A recorder with a clock of its own.
class Recorder {
 public:
  uint64_t enter(const char* call, int64_t at_ns) {
    const uint64_t number = ++memory_->header.events_begun;
    FlightEvent& event = memory_->events[(number - 1) % kFlightEvents];
    event.number = number;
    event.sequence = number;
    event.group = kGroup;
    event.entered_ns = at_ns;
    event.left_ns = 0;
    event.failed = 0;
    std::strncpy(event.call, call, sizeof event.call - 1);
    return number;
  }
  void leave(uint64_t number, int64_t at_ns, uint8_t failed = 0) {
    FlightEvent& event = memory_->events[(number - 1) % kFlightEvents];
    event.failed = failed;
    event.left_ns = at_ns;
  }
  /// `count` calls of `took_ns` each; the last one ends at `end_ns`.
  void calls(const char* call, int64_t count, int64_t took_ns, int64_t end_ns) {
    for (int64_t i = 0; i < count; ++i) leave(enter(call, end_ns - took_ns), end_ns);
  }
  const FlightMemory& memory() const { return *memory_; }

 private:
  std::unique_ptr<FlightMemory> memory_ = std::make_unique<FlightMemory>();
};

TEST(PatienceNs, ThreeTimesTheLongestAndAtLeastASecond) {
  EXPECT_EQ(patience_ns({kFewestCalls, 1000}, {90, 9 * kSec}), kSec);
  EXPECT_EQ(patience_ns({kFewestCalls, 2 * kSec}, {90, 9 * kSec}), 6 * kSec);
}

TEST(PatienceNs, OfRareCallsAllOfTheGroupTell) {
  EXPECT_EQ(patience_ns({1, 0}, {kFewestCalls, kSec}), 10 * kSec);
  EXPECT_EQ(patience_ns({0, 0}, {kFewestCalls, 4 * kSec}), 12 * kSec);
}

TEST(PatienceNs, TheFirstCallsMayWaitForASlowStart) {
  EXPECT_EQ(patience_ns({0, 0}, {0, 0}), 30 * kSec);
  EXPECT_EQ(patience_ns({1, kSec}, {kFewestCalls - 1, 20 * kSec}), 60 * kSec);
}

TEST(Patience, TellsACallOnce) {
  Recorder recorder;
  Patience patience;
  recorder.calls("barrier", kFewestCalls, 1000, kSec);
  const uint64_t late = recorder.enter("barrier", kSec);
  EXPECT_TRUE(patience.look(recorder.memory(), 2 * kSec).empty());
  EXPECT_TRUE(patience.is_open(late));
  const auto overdue = patience.look(recorder.memory(), 2 * kSec + 1);
  ASSERT_EQ(overdue.size(), 1u);
  EXPECT_EQ(overdue[0].number, late);
  EXPECT_EQ(overdue[0].group, kGroup);
  EXPECT_EQ(overdue[0].longest_ns, 1000);
  EXPECT_EQ(overdue[0].so_far_ns, kSec + 1);
  EXPECT_TRUE(patience.look(recorder.memory(), 3 * kSec).empty());
}

TEST(Patience, LearnsFromEachWait) {
  Recorder recorder;
  Patience patience;
  recorder.calls("barrier", kFewestCalls, 1000, kSec);
  recorder.leave(recorder.enter("barrier", kSec), 3 * kSec);
  recorder.enter("barrier", 3 * kSec);
  for (int64_t at = 3; at <= 9; ++at) {
    EXPECT_TRUE(patience.look(recorder.memory(), at * kSec).empty()) << at;
  }
  EXPECT_EQ(patience.look(recorder.memory(), 9 * kSec + 1).size(), 1u);
}

TEST(Patience, KnowsCallsByKindAndLearnsNothingFromErrors) {
  Recorder recorder;
  Patience patience;
  recorder.calls("barrier", kFewestCalls, 1000, kSec);
  recorder.leave(recorder.enter("barrier", kSec), 3 * kSec, 1);
  recorder.enter("all_reduce", 3 * kSec);
  const uint64_t late = recorder.enter("barrier", 3 * kSec);
  const auto overdue = patience.look(recorder.memory(), 5 * kSec);
  ASSERT_EQ(overdue.size(), 1u);
  EXPECT_EQ(overdue[0].number, late);
}

TEST(Patience, ACallOnceAnEpochIsToldToo) {
  Recorder recorder;
  Patience patience;
  recorder.calls("all_reduce", kFewestCalls, 1000, kSec);
  const uint64_t late = recorder.enter("barrier", kSec);
  for (int64_t at = 1; at <= 11; ++at) {
    EXPECT_TRUE(patience.look(recorder.memory(), at * kSec).empty()) << at;
  }
  const auto overdue = patience.look(recorder.memory(), 11 * kSec + 1);
  ASSERT_EQ(overdue.size(), 1u);
  EXPECT_EQ(overdue[0].number, late);
  EXPECT_EQ(overdue[0].longest_ns, 1000);
}

TEST(Patience, AGroupThatTakesTheEntryOfOneThatEndedBeginsAnew) {
  Recorder recorder;
  Patience patience;
  recorder.calls("barrier", kFewestCalls, 1000, kSec);
  EXPECT_TRUE(patience.look(recorder.memory(), kSec).empty());
  patience.forget(kGroup);
  recorder.enter("barrier", kSec);
  for (int64_t at = 1; at <= 31; ++at) {
    EXPECT_TRUE(patience.look(recorder.memory(), at * kSec).empty()) << at;
  }
  EXPECT_EQ(patience.look(recorder.memory(), 31 * kSec + 1).size(), 1u);
}

TEST(Patience, BlamesNobodyForItsOwnPause) {
  Recorder recorder;
  Patience patience;
  recorder.calls("barrier", kFewestCalls, 1000, kSec);
  recorder.enter("barrier", kSec);
  EXPECT_TRUE(patience.look(recorder.memory(), kSec).empty());
  EXPECT_TRUE(patience.look(recorder.memory(), 60 * kSec).empty());
  EXPECT_TRUE(patience.look(recorder.memory(), 61 * kSec).empty());
  EXPECT_EQ(patience.look(recorder.memory(), 61 * kSec + 1).size(), 1u);
}

/// Looks every 0.2 s after `from_ns` until `to_ns`; returns true if a call was overdue.
bool is_overdue(Patience& patience, const Recorder& recorder, int64_t from_ns, int64_t to_ns) {
  bool found = false;
  for (int64_t at = from_ns + kSec / 5; at <= to_ns; at += kSec / 5) {
    found = !patience.look(recorder.memory(), at).empty() || found;
  }
  return found;
}

// A process that stands still does not wait, so it learns nothing about the duration of calls.
TEST(Patience, AStandstillTeachesNothing) {
  Recorder recorder;
  Patience patience(kSec / 2);
  recorder.calls("barrier", kFewestCalls, 1000, kSec);
  const uint64_t frozen = recorder.enter("barrier", kSec);
  EXPECT_FALSE(is_overdue(patience, recorder, kSec, 7 * kSec / 5));
  EXPECT_FALSE(is_overdue(patience, recorder, 60 * kSec, 60 * kSec + kSec / 5));
  recorder.leave(frozen, 60 * kSec + kSec / 4);
  EXPECT_FALSE(is_overdue(patience, recorder, 60 * kSec + kSec / 5, 61 * kSec));
  recorder.enter("barrier", 61 * kSec);
  EXPECT_TRUE(is_overdue(patience, recorder, 61 * kSec, 64 * kSec));
}

// A short one counts too: added to the call's earlier wait, it would make the call overdue.
TEST(Patience, ShortStandstillsAreNoWait) {
  Recorder recorder;
  Patience patience(kSec / 2);
  recorder.calls("barrier", kFewestCalls, 1000, kSec);
  recorder.enter("barrier", kSec);
  int64_t now = kSec;
  for (int pause = 0; pause < 2; ++pause) {
    EXPECT_FALSE(is_overdue(patience, recorder, now, now + kSec / 5)) << pause;
    now += kSec / 5 + 7 * kSec / 10;
  }
  EXPECT_FALSE(is_overdue(patience, recorder, now, now + kSec / 5));
  EXPECT_TRUE(is_overdue(patience, recorder, now + kSec / 5, now + 2 * kSec));
}

// In a large job looks are rare; the gaps are no standstills.
TEST(Patience, RareLooksAreNoStandstills) {
  Recorder recorder;
  Patience patience(3 * kSec);
  recorder.calls("barrier", kFewestCalls, 1000, kSec);
  recorder.enter("barrier", kSec);
  EXPECT_TRUE(patience.look(recorder.memory(), kSec).empty());
  EXPECT_EQ(patience.look(recorder.memory(), 3 * kSec).size(), 1u);
}

TEST(Patience, LearnsAfterARest) {
  Recorder recorder;
  Patience patience(kSec / 2);
  EXPECT_TRUE(patience.look(recorder.memory(), kSec).empty());
  for (int64_t at = kSec; at < 60 * kSec; at += kSec / 5) patience.rest(at);
  recorder.calls("barrier", kFewestCalls, kSec / 10, 60 * kSec);
  EXPECT_TRUE(patience.look(recorder.memory(), 60 * kSec).empty());
  recorder.enter("barrier", 60 * kSec);
  EXPECT_TRUE(is_overdue(patience, recorder, 60 * kSec, 62 * kSec))
      << "30 s were the first patience";
}

TEST(Patience, LosesCallsThatWereOverwritten) {
  Recorder recorder;
  Patience patience;
  recorder.calls("barrier", kFewestCalls, 1000, kSec);
  const uint64_t first = recorder.enter("recv", kSec);
  EXPECT_TRUE(patience.look(recorder.memory(), kSec).empty());
  recorder.calls("barrier", 2 * kFlightEvents, 1000, kSec);
  EXPECT_TRUE(patience.look(recorder.memory(), 2 * kSec).empty());
  EXPECT_FALSE(patience.is_open(first));
  EXPECT_TRUE(patience.is_idle(recorder.memory().header.events_begun));
}

TEST(LateFor, WhoHasNotComeOrIsStoppedOrSilent) {
  std::vector<LastCall> calls(4);
  for (int i = 0; i < 4; ++i) {
    calls[static_cast<size_t>(i)].rank = i;
    calls[static_cast<size_t>(i)].reached = 7;
    calls[static_cast<size_t>(i)].inside = true;
  }
  EXPECT_TRUE(late_for(calls, {0, 1, 2, 3}, 7).empty());
  calls[1].reached = 6;
  calls[2].process = "stopped";
  calls[3].reached = 8;  // it has all its data, and goes on
  EXPECT_EQ(late_for(calls, {0, 1, 2, 3, 4}, 7), (std::vector<int>{1, 2, 4}));
}

}  // namespace
}  // namespace lockstep
