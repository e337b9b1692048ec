#include "lockstep/store/heartbeats.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using namespace std::chrono_literals;
using Time = Heartbeats::Time;
using Ids = std::vector<uint64_t>;

Time at(std::chrono::milliseconds time) {
  return Time(time);
}

/// For clients whose time to live is the last expected one.
Heartbeats::TtlOf always(Heartbeats::Ttl ttl) {
  return [=](uint64_t) { return std::optional(ttl); };
}

TEST(Heartbeats, WhoIsSilentForItsTimeIsNamedOnce) {
  Heartbeats heartbeats;
  EXPECT_EQ(heartbeats.next(), std::nullopt);
  heartbeats.expect(1, 100ms, at(0ms));
  heartbeats.expect(2, 300ms, at(0ms));
  EXPECT_EQ(heartbeats.next(), at(100ms));
  EXPECT_EQ(heartbeats.silent(at(99ms), always(100ms)), Ids{});
  EXPECT_EQ(heartbeats.silent(at(100ms), always(100ms)), Ids{1});
  EXPECT_EQ(heartbeats.silent(at(299ms), always(300ms)), Ids{});
  EXPECT_EQ(heartbeats.silent(at(500ms), always(300ms)), Ids{2});
  EXPECT_TRUE(heartbeats.empty());
  EXPECT_EQ(heartbeats.next(), std::nullopt);
}

TEST(Heartbeats, WhoIsHeardIsNotNamed) {
  Heartbeats heartbeats;
  heartbeats.expect(1, 100ms, at(0ms));
  heartbeats.expect(2, 100ms, at(0ms));
  heartbeats.heard(3, at(5ms));
  for (auto now = 50ms; now < 1000ms; now += 50ms) {
    heartbeats.heard(1, at(now));
    EXPECT_EQ(heartbeats.silent(at(now), always(100ms)), now == 100ms ? Ids{2} : Ids{});
  }
  EXPECT_EQ(heartbeats.silent(at(1049ms), always(100ms)), Ids{});
  EXPECT_EQ(heartbeats.silent(at(1050ms), always(100ms)), Ids{1});
}

TEST(Heartbeats, TheShortestTimeCounts) {
  Heartbeats heartbeats;
  heartbeats.expect(1, 1000ms, at(0ms));
  heartbeats.expect(1, 100ms, at(10ms));
  heartbeats.expect(1, 500ms, at(20ms));
  EXPECT_EQ(heartbeats.silent(at(119ms), always(100ms)), Ids{});
  EXPECT_EQ(heartbeats.silent(at(120ms), always(100ms)), Ids{1});
}

TEST(Heartbeats, ATimeThatHasGrownIsHeeded) {
  Heartbeats heartbeats;
  heartbeats.expect(1, 100ms, at(0ms));
  EXPECT_EQ(heartbeats.silent(at(100ms), always(300ms)), Ids{});
  EXPECT_EQ(heartbeats.next(), at(300ms));
  EXPECT_EQ(heartbeats.silent(at(300ms), always(300ms)), Ids{1});
}

TEST(Heartbeats, WhoHoldsNothingMayBeSilent) {
  Heartbeats heartbeats;
  heartbeats.expect(1, 100ms, at(0ms));
  EXPECT_EQ(heartbeats.silent(at(100ms), [](uint64_t) { return std::nullopt; }), Ids{});
  EXPECT_TRUE(heartbeats.empty());
}

TEST(Heartbeats, AForgottenClientMayComeBack) {
  Heartbeats heartbeats;
  heartbeats.expect(1, 100ms, at(0ms));
  heartbeats.forget(1);
  heartbeats.expect(1, 200ms, at(0ms));
  EXPECT_EQ(heartbeats.silent(at(150ms), always(200ms)), Ids{});
  EXPECT_EQ(heartbeats.silent(at(200ms), always(200ms)), Ids{1});
}

TEST(Heartbeats, RenewingDoesNotFillTheQueue) {
  Heartbeats heartbeats;
  for (auto now = 0ms; now < 100'000ms; now += 10ms) {
    heartbeats.expect(1, 100ms, at(now));
    EXPECT_EQ(heartbeats.silent(at(now), always(100ms)), Ids{});
    // It checks the client once per time to live, not at each renewal.
    EXPECT_GE(*heartbeats.next(), at(now));
    EXPECT_LE(*heartbeats.next(), at(now + 100ms));
  }
}

TEST(ListeningClock, GoesWithTheTimeThatWasPlanned) {
  ListeningClock clock(at(0ms));
  EXPECT_EQ(clock.advance(at(250ms), 250ms), at(250ms));
  EXPECT_EQ(clock.advance(at(340ms), 50ms), at(340ms));
  EXPECT_EQ(clock.advance(at(10'340ms), std::nullopt), at(10'340ms));
}

TEST(ListeningClock, StandsStillWhileTheLoopWasStopped) {
  ListeningClock clock(at(0ms));
  EXPECT_EQ(clock.advance(at(60'000ms), 250ms), at(350ms));
  EXPECT_EQ(clock.advance(at(60'100ms), 250ms), at(450ms));
}

}  // namespace
}  // namespace lockstep
