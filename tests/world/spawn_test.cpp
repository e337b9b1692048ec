// Ranks from within one program: as processes, and as threads.
#include "lockstep/spawn.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <future>
#include <thread>

#include "lockstep/process_group.h"
#include "lockstep/world/spawn/ranks.h"
#include "tests/support/error_of.h"
#include "tests/support/held_port.h"
#include "tests/support/refused_calls.h"

namespace lockstep {
namespace {

using namespace std::chrono_literals;

/// The sum of all ranks' numbers, by a group of them.
int64_t sum_over_ranks(int rank, int num_ranks) {
  const World world = World::join(Deadline::after(60s));
  if (world.rank != rank || world.size != num_ranks || world.local_rank != rank) {
    throw Error(ErrorCode::kInternal, fmt::format("rank {} of {}", world.rank, world.size));
  }
  auto group = ProcessGroup::create(world, {.timeout = 60s});
  int64_t sum = rank;
  group.all_reduce(&sum, 1, DType::kInt64, ReduceOp::kSum).wait();
  return sum;
}

/// Waits for another rank in vain.
void wait_for_others(int) {
  auto group = ProcessGroup::create(World::join(Deadline::after(60s)), {.timeout = 60s});
  group.barrier();
  group.barrier();
}

/// The same, but this rank does not come to the second barrier.
ProcessGroup leave_others_waiting() {
  auto group = ProcessGroup::create(World::join(Deadline::after(60s)), {.timeout = 60s});
  group.barrier();
  return group;
}

void expect_no_children() {
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

class Spawn : public ::testing::TestWithParam<bool> {
 protected:
  SpawnOptions options() const { return {.threads = GetParam()}; }
};
INSTANTIATE_TEST_SUITE_P(Ranks, Spawn, ::testing::Values(false, true), [](const auto& given) {
  return given.param ? "AreThreads" : "AreProcesses";
});

TEST_P(Spawn, RunsEveryRankInItsPlaceAgainAndAgain) {
  for (const int ranks : {1, 3, 2}) {
    std::atomic<int> ran = 0;
    spawn(
        ranks,
        [&](int rank) {
          ++ran;
          const int64_t sum = sum_over_ranks(rank, ranks);
          if (sum != ranks * (ranks - 1) / 2) throw Error(ErrorCode::kInternal, "sum");
        },
        options());
    EXPECT_EQ(ran, GetParam() ? ranks : 0) << "processes have memory of their own";
    expect_no_children();
  }
}

/// One host of the usual recipe: spawn() on each, and all ranks meet at one address.
int join_all_from_node(int node, int port, const std::string& secret) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::setenv("LOCKSTEP_SECRET", secret.c_str(), 1);
  try {
    spawn(2, [&](int local_rank) {
      const World world = World::join({.rank = 2 * node + local_rank,
                                       .world_size = 4,
                                       .master_addr = "127.0.0.1",
                                       .master_port = port},
                                      Deadline::after(60s));
      if (!secret.empty() && world.secret != secret) throw std::runtime_error("another secret");
      store_barrier(*world.store, "here", world.rank, 4, Deadline::after(60s));
      store_barrier(*world.store, "done", world.rank, 4, Deadline::after(60s));
    });
  } catch (const std::exception& error) {
    fmt::print(stderr, "node {}: {}\n", node, error.what());
    ::_exit(1);
  }
  ::_exit(0);
}

TEST(SpawnOverHosts, RanksMeetByTheUsersSecretOrAsProcessesOfOneUser) {
  for (const char* secret : {"the user's own, of many letters", ""}) {
    const testing::HeldPort port;
    const int first = join_all_from_node(0, port.number(), secret);
    const int second = join_all_from_node(1, port.number(), secret);
    for (const int pid : {first, second}) {
      int status = 0;
      ASSERT_EQ(::waitpid(pid, &status, 0), pid);
      EXPECT_EQ(status, 0) << "secret: '" << secret << "'";
    }
  }
}

TEST_P(Spawn, ThrowsTheFirstFailureAndEndsTheOthers) {
  const Error error = error_of([&] {
    spawn(
        3,
        [](int rank) {
          if (rank != 1) return wait_for_others(rank);
          const auto group = leave_others_waiting();
          throw Error(ErrorCode::kCorrupt, "its own");
        },
        options());
  });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_STREQ(error.what(), "rank 1 of 3: its own");
  expect_no_children();
}

TEST_P(Spawn, OtherExceptionsKeepTheirText) {
  for (const bool standard : {true, false}) {
    try {
      spawn(
          1,
          [&](int) {
            if (standard) throw std::out_of_range("beyond");
            throw 3;
          },
          options());
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), standard ? "rank 0 of 1: beyond"
                                          : "rank 0 of 1: an exception that is no std::exception");
    }
  }
}

TEST_P(Spawn, MayBeNested) {
  const Error error = error_of([&] {
    spawn(
        2,
        [&](int rank) {
          spawn(
              2,
              [](int inner) {
                if (sum_over_ranks(inner, 2) != 1) throw std::runtime_error("sum");
              },
              options());
          spawn(
              2,
              [&](int inner) {
                if (rank == 1 && inner == 1) throw Error(ErrorCode::kNotFound, "within");
              },
              options());
        },
        options());
  });
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_STREQ(error.what(), "rank 1 of 2: rank 1 of 2: within");
}

TEST_P(Spawn, OfNoRanksIsRefused) {
  const Error error = error_of([&] {
    spawn(
        0, [](int) {}, options());
  });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_STREQ(error.what(), "spawn of 0 ranks; there must be at least 1");
}

/// The error of spawn() if rank 1 of 2 ends in this way while rank 0 waits for it.
std::string end_of_rank_1(const std::function<void()>& end) {
  const Error error = error_of([&] {
    spawn(2, [&](int rank) {
      if (rank == 0) return wait_for_others(rank);
      const auto group = leave_others_waiting();
      end();
    });
  });
  EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
  expect_no_children();
  return error.what();
}

TEST(SpawnProcesses, SayHowARankEnded) {
  EXPECT_EQ(end_of_rank_1([] { ::raise(SIGKILL); }), "rank 1 of 2: killed by SIGKILL");
  EXPECT_EQ(end_of_rank_1([] { ::abort(); }), "rank 1 of 2: killed by SIGABRT");
  // The peer may notice the loss before the kernel reports the end, and then reports it first.
  const auto text = end_of_rank_1([] { ::_exit(3); });
  EXPECT_TRUE(text == "rank 1 of 2: exit code 3") << text;
}

TEST(SpawnProcesses, AreKilledWhenTheyDoNotHeedSigterm) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const Error error = error_of([&] {
    spawn(2,
          [&](int rank) {
            if (rank == 0) {
              ::signal(SIGTERM, SIG_IGN);
              if (::write(ready[1], "x", 1) != 1) ::_exit(9);
              while (true) ::pause();
            }
            char byte = 0;
            if (::read(ready[0], &byte, 1) != 1) ::_exit(9);
            throw Error(ErrorCode::kIo, "the end");
          },
          {.grace = 50ms});
  });
  EXPECT_STREQ(error.what(), "rank 1 of 2: the end");
  expect_no_children();
  ::close(ready[0]);
  ::close(ready[1]);
}

// Ranks hold the write end of a pipe, which ends with the last of them.
TEST(SpawnProcesses, EndWithTheProcessThatStartedThem) {
  int alive[2];
  ASSERT_EQ(::pipe(alive), 0);
  const int parent = ::fork();
  if (parent == 0) {
    ::close(alive[0]);
    spawn(2, [&](int) {
      if (::write(alive[1], "x", 1) != 1) ::_exit(9);
      while (true) ::pause();
    });
    ::_exit(0);
  }
  ::close(alive[1]);
  char byte = 0;
  for (int rank = 0; rank < 2; ++rank) ASSERT_EQ(::read(alive[0], &byte, 1), 1);
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  pollfd end{alive[0], POLLIN, 0};
  EXPECT_EQ(::poll(&end, 1, 30'000), 1);
  EXPECT_EQ(::read(alive[0], &byte, 1), 0);
  ::close(alive[0]);
}

TEST(SpawnProcesses, AreRefusedToAProcessWithThreads) {
  std::promise<void> done;
  std::thread other([&] { done.get_future().wait(); });
  const Error error = error_of([] { spawn(2, [](int) {}); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(std::string(error.what()).find("has started 1 other thread, "), std::string::npos)
      << error.what();
  spawn(2, [](int) {}, {.threads = true});
  done.set_value();
  other.join();
  spawn(2, [](int) {});
  const Error nested = error_of([] {
    spawn(2, [](int rank) {
      const auto group = ProcessGroup::create(World::join(), {.timeout = 60s});
      if (rank == 0) spawn(1, [](int) {});
    });
  });
  EXPECT_EQ(nested.code(), ErrorCode::kInvalidArgument);
}

TEST(SpawnProcesses, NeedNoPidfds) {
  for (const int error : {ENOSYS, EPERM}) {
    EXPECT_EXIT(
        {
          testing::refuse_calls(testing::kCallsSinceLinux5, error);
          for (const int ranks : {3, 2})
            spawn(ranks, [&](int rank) { sum_over_ranks(rank, ranks); });
          EXPECT_EQ(end_of_rank_1([] { ::raise(SIGKILL); }), "rank 1 of 2: killed by SIGKILL");
          std::fflush(nullptr);
          ::_exit(HasFailure() ? 1 : 0);
        },
        ::testing::ExitedWithCode(0), "");
  }
}

TEST(SpawnProcesses, DoNotMindIgnoredChildren) {
  ::signal(SIGCHLD, SIG_IGN);
  const Error error = error_of([] { spawn(1, [](int) { ::_exit(4); }); });
  EXPECT_STREQ(error.what(), "rank 0 of 1: exit code 4");
  EXPECT_EQ(::signal(SIGCHLD, SIG_DFL), SIG_IGN);
}

TEST(RankFailures, TheCauseIsNotTheLossOfAnother) {
  const RankFailure loss{0, ErrorCode::kPeerLost, "rank 1 died"};
  const RankFailure own{1, ErrorCode::kIo, "disk"};
  const RankFailure plain{2, std::nullopt, "plain"};
  const RankFailure died{3, ErrorCode::kPeerLost, "killed by SIGSEGV", true};
  EXPECT_EQ(cause_among({loss, own, plain}), own);
  EXPECT_EQ(cause_among({loss, plain}), plain);
  EXPECT_EQ(cause_among({loss, died}), died);
  EXPECT_EQ(cause_among({own, died}), own);
  EXPECT_EQ(cause_among({loss}), loss);
}

TEST(RankFailures, TravelInOneWrite) {
  for (const auto& failure :
       {RankFailure{0, ErrorCode::kInvalidArgument, ""}, RankFailure{7, std::nullopt, "text"}}) {
    EXPECT_EQ(failure_from_message(to_message(failure)), failure);
  }
  const auto longest = to_message({1, std::nullopt, std::string(PIPE_BUF, 'x')});
  EXPECT_EQ(longest.size(), static_cast<size_t>(PIPE_BUF));
  EXPECT_EQ(error_of([] { failure_from_message("abc"); }).code(), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace lockstep
