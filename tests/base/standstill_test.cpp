#include "lockstep/base/standstill.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "lockstep/base/literals.h"
#include "lockstep/deadline.h"

namespace lockstep {
namespace {

constexpr auto ticks(std::chrono::milliseconds time) {
  return static_cast<Running::Ticks>(std::chrono::duration_cast<Running::Tick>(time).count());
}

Running after_gap(std::chrono::milliseconds gap, bool watched = true) {
  return Running{1000, 7}.seen_at(1000 + ticks(gap), watched);
}

TEST(Standstill, IsAGapOfMoreThanASecondBeyondThePulse) {
  EXPECT_EQ(after_gap(1250ms).missed, 7U);
  EXPECT_EQ(after_gap(1260ms).missed, 7U + ticks(1010ms));
  EXPECT_EQ(after_gap(60s).missed, 7U + ticks(60s - 250ms));
  EXPECT_EQ(after_gap(60s).seen, 1000U + ticks(60s));
}

TEST(Standstill, IsNothingThatNobodyWatches) {
  EXPECT_EQ(after_gap(60s, false).missed, 7U);
  EXPECT_EQ(after_gap(60s, false).seen, 1000U + ticks(60s));
}

TEST(Standstill, ALoadedMachineLosesNoTimeHoweverLongItIsLoaded) {
  Running running;
  for (Running::Ticks now = 0; now < ticks(3600s); now += ticks(1200ms))
    running = running.seen_at(now, true);
  EXPECT_EQ(running.missed, 0U);
}

TEST(Standstill, AddsUp) {
  Running running;
  for (int i = 0; i < 3; ++i) running = running.seen_at(running.seen + ticks(10s), true);
  EXPECT_EQ(running.missed, 3 * ticks(10s - 250ms));
}

// Otherwise it is counted twice: by the thread that sees it first, and by one that looked before it
// and reports after.
TEST(Standstill, IsCountedOnce) {
  const Running first = after_gap(60s);
  EXPECT_TRUE(first.is_fresh(first.seen + ticks(90ms)));
  EXPECT_EQ(first.seen_at(first.seen + ticks(200ms), true).missed, first.missed);
}

TEST(Standstill, TicksMayGoRound) {
  const Running before{static_cast<Running::Ticks>(-5), static_cast<Running::Ticks>(-2)};
  EXPECT_TRUE(before.is_fresh(3));
  const Running after = before.seen_at(ticks(10s) - 5, true);
  EXPECT_EQ(after.missed, ticks(10s - 250ms) - 2);
}

/// Exit status of a child that is stopped for `time` once it has raised SIGSTOP, and then
/// continues.
int status_of_stopped(std::chrono::milliseconds time, const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body() ? 0 : 1);
  int status = 0;
  if (::waitpid(child, &status, WUNTRACED) != child || !WIFSTOPPED(status)) return -1;
  std::this_thread::sleep_for(time);
  ::kill(child, SIGCONT);
  if (::waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Standstill, MovesDeadlines) {
  const auto goes_on = [] {
    const auto pulse = Pulse::of_process();
    const auto deadline = Deadline::after(30s);
    const auto when = deadline.when();
    const auto step = deadline.at_most(2500ms);
    ::raise(SIGSTOP);
    return !step.passed() && step.left() > 0ms && deadline.when() > when + 2s &&
           Deadline::at(deadline.when()).left() > 27s;
  };
  EXPECT_EQ(status_of_stopped(3500ms, goes_on), 0);
}

TEST(Standstill, IsNotNoticedWithoutAPulse) {
  const auto ends = [] {
    Pulse::of_process().reset();
    const auto deadline = Deadline::after(2s);
    ::raise(SIGSTOP);
    return deadline.passed();
  };
  EXPECT_EQ(status_of_stopped(2500ms, ends), 0);
}

// A forked child has none of its parent's threads.
TEST(Standstill, OfAForkedChildHasNoPulse) {
  const auto pulse = Pulse::of_process();
  const auto ends = [] {
    const auto deadline = Deadline::after(2s);
    ::raise(SIGSTOP);
    return deadline.passed();
  };
  EXPECT_EQ(status_of_stopped(2500ms, ends), 0);
}

}  // namespace
}  // namespace lockstep
