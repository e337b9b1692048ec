#include "lockstep/comm/flight/last_calls.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "lockstep/base/literals.h"
#include "lockstep/comm/flight/process_state.h"
#include "lockstep/store/memory/memory_store.h"
#include "tests/support/error_of.h"

namespace lockstep {
namespace {

constexpr int64_t kOneSecond = 1'000'000'000;

FlightEntry entry_in(const std::string& group, uint64_t sequence, int64_t entered, int64_t left) {
  FlightEntry entry;
  entry.call = "all_reduce";
  entry.group = group;
  entry.sequence = sequence;
  entry.count = 1 << 18;
  entry.bytes = 1 << 20;
  entry.dtype = "float32";
  entry.entered_ns = entered * kOneSecond;
  entry.left_ns = left * kOneSecond;
  return entry;
}

LastCall last_of(const std::vector<FlightEntry>& entries) {
  FlightRecord record;
  record.rank = 2;
  record.entries = entries;
  return last_call(record, "w", 20 * kOneSecond);
}

TEST(LastCall, IsTheOneOfTheGroupThatTheRankIsIn) {
  const LastCall call =
      last_of({entry_in("w", 1, 5, 6), entry_in("w", 2, 7, 0), entry_in("other", 9, 8, 9)});
  EXPECT_EQ(call.what, "all_reduce #2 (float32, 1.0 MiB)");
  EXPECT_TRUE(call.inside);
  EXPECT_EQ(call.seconds, 13);
}

TEST(LastCall, IsElseTheLastOfAnyGroup) {
  const LastCall in_other = last_of({entry_in("w", 1, 5, 6), entry_in("other", 9, 8, 0)});
  EXPECT_EQ(in_other.what, "all_reduce #9 (float32, 1.0 MiB) of group other");
  EXPECT_TRUE(in_other.inside);
  FlightEntry placed = entry_in("other", 9, 8, 0);
  placed.site = "reducer.cpp:88 (bucket 3)";
  EXPECT_EQ(last_of({placed}).what,
            "all_reduce #9 (float32, 1.0 MiB) of group other at reducer.cpp:88 (bucket 3)");
  const LastCall done = last_of({entry_in("other", 9, 2, 3), entry_in("w", 1, 5, 6)});
  EXPECT_FALSE(done.inside);
  EXPECT_EQ(done.seconds, 14);
  EXPECT_EQ(last_of({}).what, "");
}

// A rank that has just received the error was in the operation until then.
TEST(LastCall, AnOperationThatFailedIsOneThatTheRankIsIn) {
  FlightEntry failed = entry_in("w", 3, 10, 19);
  failed.failed = true;
  const LastCall call = last_of({failed});
  EXPECT_TRUE(call.inside);
  EXPECT_EQ(call.seconds, 10);
}

TEST(LastCall, AnErrorAfterWhichTheGroupGoesOnEndsTheOperation) {
  FlightEntry failed = entry_in("w", 3, 10, 11);
  failed.failed = failed.went_on = true;
  for (const auto& entries : {std::vector{failed}, std::vector{failed, entry_in("w", 4, 12, 13)}}) {
    const LastCall call = last_of(entries);
    EXPECT_FALSE(call.inside);
    EXPECT_EQ(call.what, to_string(entries.back()));
  }
}

TEST(LastCalls, TellsRanksThatDidTheSameTogether) {
  EXPECT_EQ(
      last_calls_text({{2, "barrier #3", true, 3.96, "", ""},
                       {1, "all_reduce #2 (float32, 4 B)", false, 4.1, "stopped", "pause < main"},
                       {0, "barrier #3", true, 4.0, "", ""},
                       {4, "", false, 0, "running", ""}},
                      {0, 1, 2, 3, 4}),
      "ranks 0, 2: in barrier #3 for 4.0 s; "
      "rank 1 (stopped): done with all_reduce #2 (float32, 4 B) 4.1 s ago; "
      "rank 4 (running): nothing yet; rank 3: no word; stack of rank 1: pause < main");
  EXPECT_EQ(last_calls_text({}, {0, 1}), "ranks 0, 1: no word");
}

TEST(LastCalls, StayShort) {
  std::vector<LastCall> calls;
  std::vector<int> ranks;
  for (int rank = 0; rank < 100; ++rank) {
    calls.push_back({rank, "barrier #" + std::to_string(rank), true, 1, "", ""});
    ranks.push_back(rank);
  }
  const std::string text = last_calls_text(calls, ranks);
  EXPECT_NE(text.find("; and 84 more ranks"), std::string::npos) << text;
  EXPECT_EQ(text.find("no word"), std::string::npos) << text;
}

// Two per host: if one rank enters alone, all others are late.
TEST(LastCalls, TellAFewStacks) {
  std::vector<LastCall> calls;
  std::vector<int> ranks;
  for (int rank = 0; rank < 100; ++rank) {
    calls.push_back({rank, "barrier #1", false, 1, "sleeping", "pause < main"});
    ranks.push_back(rank);
  }
  const std::string text = last_calls_text(calls, ranks);
  EXPECT_NE(text.find("; stack of rank 0: pause < main"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("; stack of rank 7: pause < main; and 92 more stacks")) << text;
}

TEST(LastCalls, SurviveTheStore) {
  const auto calls =
      decode_last_calls(encode_last_calls({{7, "barrier #3", true, 1.5, "dead", "main"}}));
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].rank, 7);
  EXPECT_EQ(calls[0].what, "barrier #3");
  EXPECT_TRUE(calls[0].inside);
  EXPECT_EQ(calls[0].seconds, 1.5);
  EXPECT_EQ(calls[0].process, "dead");
  EXPECT_EQ(calls[0].stack, "main");
  for (const char* garbage : {"", "{", "[1]", "[[1,2,3,4,5,6]]", "3"}) {
    EXPECT_EQ(error_of([&] { decode_last_calls(garbage); }).code(), ErrorCode::kCorrupt) << garbage;
  }
}

TEST(ProcessState, TellsStoppedAndDeadFromAlive) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    while (true) ::pause();
  }
  const auto after = [pid](int signal, int options) {
    int status = 0;
    ::kill(pid, signal);
    ::waitpid(pid, &status, options);
    return process_state(pid);
  };
  EXPECT_EQ(after(SIGSTOP, WUNTRACED), "stopped");
  ::kill(pid, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(process_state(pid), "dead");  // and not reaped
  ::waitpid(pid, nullptr, 0);
  EXPECT_EQ(process_state(pid), "dead");
  EXPECT_EQ(process_state(::getpid()), "running");
}

// Its connections are closed a moment before it is a zombie: others take it for dead then.
TEST(ProcessState, OfOneWhoseFilesAreClosedIsDead) {
  for (int i = 0; i < 500; ++i) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::close(ends[0]);
      while (true) ::pause();
    }
    ::close(ends[1]);
    ::kill(pid, SIGKILL);
    char none = 0;
    EXPECT_EQ(::read(ends[0], &none, 1), 0);
    EXPECT_EQ(process_state(pid), "dead");
    ::close(ends[0]);
    ::waitpid(pid, nullptr, 0);
  }
}

// On a busy machine a look at a stack may take long: the first rank waits for hosts that have begun
// to report.
TEST(LastCalls, AHostThatHasBegunToTellIsAwaited) {
  GroupSpec spec;
  spec.size = 2;
  spec.name = "g";
  spec.world_ranks = {0, 1};
  spec.host_ids = {"a", "b"};
  spec.store = make_memory_store();
  const auto limit = Deadline::after(30s);
  spec.store->set("g/last/of/1", "", limit);
  std::thread other([&] {  // the same steps as tell_of_host() there
    std::this_thread::sleep_for(1200ms);
    const std::vector<LastCall> calls = {{1, "barrier #3", true, 4, "stopped", "pause < main"}};
    spec.store->set("g/last/1", encode_last_calls(calls), limit);
  });
  const std::string text = with_last_calls(spec, Error(ErrorCode::kTimeout, "late")).what();
  other.join();
  EXPECT_NE(text.find("rank 1 (stopped): in barrier #3 for 4.0 s"), std::string::npos) << text;
  EXPECT_NE(text.find("stack of rank 1: pause < main"), std::string::npos) << text;
}

}  // namespace
}  // namespace lockstep
