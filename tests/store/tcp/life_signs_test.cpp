#include "lockstep/store/tcp/life_signs.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using namespace std::chrono_literals;
using Time = LifeSigns::Time;
using Ids = std::vector<uint64_t>;

Time at(std::chrono::milliseconds time) {
  return Time(time);
}

/// For clients whose time to live is the last expected one.
LifeSigns::TtlOf always(LifeSigns::Ttl ttl) {
  return [=](uint64_t) { return std::optional(ttl); };
}

TEST(LifeSigns, WhoIsSilentForItsTimeIsNamedOnce) {
  LifeSigns signs;
  EXPECT_EQ(signs.next(), std::nullopt);
  signs.expect(1, 100ms, at(0ms));
  signs.expect(2, 300ms, at(0ms));
  EXPECT_EQ(signs.next(), at(100ms));
  EXPECT_EQ(signs.silent(at(99ms), always(100ms)), Ids{});
  EXPECT_EQ(signs.silent(at(100ms), always(100ms)), Ids{1});
  EXPECT_EQ(signs.silent(at(299ms), always(300ms)), Ids{});
  EXPECT_EQ(signs.silent(at(500ms), always(300ms)), Ids{2});
  EXPECT_TRUE(signs.empty());
  EXPECT_EQ(signs.next(), std::nullopt);
}

TEST(LifeSigns, WhoIsHeardIsNotNamed) {
  LifeSigns signs;
  signs.expect(1, 100ms, at(0ms));
  signs.expect(2, 100ms, at(0ms));
  signs.heard(3, at(5ms));
  for (auto now = 50ms; now < 1000ms; now += 50ms) {
    signs.heard(1, at(now));
    EXPECT_EQ(signs.silent(at(now), always(100ms)), now == 100ms ? Ids{2} : Ids{});
  }
  EXPECT_EQ(signs.silent(at(1049ms), always(100ms)), Ids{});
  EXPECT_EQ(signs.silent(at(1050ms), always(100ms)), Ids{1});
}

TEST(LifeSigns, TheShortestTimeCounts) {
  LifeSigns signs;
  signs.expect(1, 1000ms, at(0ms));
  signs.expect(1, 100ms, at(10ms));
  signs.expect(1, 500ms, at(20ms));
  EXPECT_EQ(signs.silent(at(119ms), always(100ms)), Ids{});
  EXPECT_EQ(signs.silent(at(120ms), always(100ms)), Ids{1});
}

TEST(LifeSigns, ATimeThatHasGrownIsHeeded) {
  LifeSigns signs;
  signs.expect(1, 100ms, at(0ms));
  EXPECT_EQ(signs.silent(at(100ms), always(300ms)), Ids{});
  EXPECT_EQ(signs.next(), at(300ms));
  EXPECT_EQ(signs.silent(at(300ms), always(300ms)), Ids{1});
}

TEST(LifeSigns, WhoHoldsNothingMayBeSilent) {
  LifeSigns signs;
  signs.expect(1, 100ms, at(0ms));
  EXPECT_EQ(signs.silent(at(100ms), [](uint64_t) { return std::nullopt; }), Ids{});
  EXPECT_TRUE(signs.empty());
}

TEST(LifeSigns, AForgottenClientMayComeBack) {
  LifeSigns signs;
  signs.expect(1, 100ms, at(0ms));
  signs.forget(1);
  signs.expect(1, 200ms, at(0ms));
  EXPECT_EQ(signs.silent(at(150ms), always(200ms)), Ids{});
  EXPECT_EQ(signs.silent(at(200ms), always(200ms)), Ids{1});
}

TEST(LifeSigns, RenewingDoesNotFillTheQueue) {
  LifeSigns signs;
  for (auto now = 0ms; now < 100'000ms; now += 10ms) {
    signs.expect(1, 100ms, at(now));
    EXPECT_EQ(signs.silent(at(now), always(100ms)), Ids{});
    // It checks the client once per time to live, not at each renewal.
    EXPECT_GE(*signs.next(), at(now));
    EXPECT_LE(*signs.next(), at(now + 100ms));
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
