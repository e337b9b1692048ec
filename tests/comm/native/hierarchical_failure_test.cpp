// Ranks of several hosts are killed, frozen, or call something else. All others must name them,
// also ranks that only waited for a rank that waited for them.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <numeric>
#include <optional>
#include <regex>
#include <thread>

#include "lockstep/base/literals.h"
#include "lockstep/comm/fault_point.h"
#include "lockstep/deadline.h"
#include "lockstep/error.h"
#include "lockstep/process_group.h"
#include "tests/comm/support/conformance.h"
#include "tests/comm/support/forked.h"

namespace lockstep::testing {
namespace {

using Call = std::function<void(ProcessGroup&)>;

std::vector<float> call_in(4 << 20);
std::vector<float> call_out(4 << 20);
constexpr DType kCallType = DType::kFloat32;

/// The direction of a call's data, of more than a few bytes.
enum class Way { kNone, kBoth, kToRoot, kFromRoot };

struct Tried {
  Call call;
  Way way = Way::kBoth;
  int root = -1;
  bool makes_groups = false;  ///< The error is that of the old group or of the new one.

  /// True if `rank` can be caught while it sends to a peer (receives).
  bool sends(int rank) const { return seen(Way::kFromRoot, rank); }
  bool receives(int rank) const { return seen(Way::kToRoot, rank); }

 private:
  bool seen(Way roots, int rank) const {
    if (way == Way::kNone || way == Way::kBoth) return way == Way::kBoth;
    return (way == roots) == (rank == root);
  }
};

/// Calls with a root.
std::vector<Tried> rooted_calls() {
  std::vector<Tried> all;
  for (const int root : {0, 1}) {
    const auto reduce = [root](ProcessGroup& group) {
      group.reduce(call_in.data(), 500'000, kCallType, ReduceOp::kSum, root).wait();
    };
    const auto gather = [root](ProcessGroup& group) {
      group.gather(call_in.data(), call_out.data(), 300'000, kCallType, root).wait();
    };
    const auto scatter = [root](ProcessGroup& group) {
      group.scatter(call_in.data(), call_out.data(), 300'000, kCallType, root).wait();
    };
    all.push_back({reduce, Way::kToRoot, root});
    all.push_back({gather, Way::kToRoot, root});
    all.push_back({scatter, Way::kFromRoot, root});
  }
  return all;
}

/// Calls that consist of others.
std::vector<Tried> composed_calls() {
  const auto coalesced = [](ProcessGroup& group) {
    const std::vector<Buffer> buffers = {{call_in.data(), 5}, {call_out.data(), 100'000}};
    group.all_reduce_coalesced(buffers, kCallType, ReduceOp::kSum).wait();
  };
  const auto allocate = [](ProcessGroup& group) { static_cast<void>(group.allocate(100'000)); };
  const auto split = [](ProcessGroup& group) { group.split(group.rank() % 2)->barrier(); };
  return {{coalesced}, {allocate, Way::kNone}, {split, Way::kNone, -1, true}};
}

/// Every kind, and sizes for one and for two steps and for several rounds.
std::vector<Tried> calls() {
  std::vector<Tried> all;
  for (const int64_t count : {5, 100'000, 3 << 20}) {
    const auto all_reduce = [count](ProcessGroup& group) {
      group.all_reduce(call_in.data(), count, kCallType, ReduceOp::kSum).wait();
    };
    all.push_back({all_reduce, count > 5 ? Way::kBoth : Way::kNone});
  }
  all.push_back({[](ProcessGroup& group) {
    group.broadcast(call_in.data(), 500'000, kCallType, 0).wait();
    group.broadcast(call_in.data(), 500'000, kCallType, group.size() - 1).wait();
  }});
  all.push_back({[](ProcessGroup& group) {
    group.all_gather(call_in.data(), call_out.data(), 300'000, kCallType).wait();
  }});
  all.push_back({[](ProcessGroup& group) {
    group.reduce_scatter(call_in.data(), call_out.data(), 300'000, kCallType, ReduceOp::kSum)
        .wait();
  }});
  all.push_back({[](ProcessGroup& group) { group.barrier(); }, Way::kNone});
  all.push_back({[](ProcessGroup& group) {
    group.all_to_all(call_in.data(), call_out.data(), 300'000, kCallType).wait();
  }});
  all.push_back({[](ProcessGroup& group) {
    const std::vector<int64_t> counts(static_cast<size_t>(group.size()), 300'000);
    group.all_gatherv(call_in.data(), call_out.data(), counts, kCallType).wait();
  }});
  const auto rooted = rooted_calls();
  all.insert(all.end(), rooted.begin(), rooted.end());
  const auto composed = composed_calls();
  all.insert(all.end(), composed.begin(), composed.end());
  return all;
}

// Indices into calls().
constexpr size_t kSmallAllReduce = 0;
constexpr size_t kLargeAllReduce = 2;
constexpr size_t kBarrier = 6;

/// Death is noticed by the connection, a frozen rank only by timeout: long enough for a call of
/// some dozen processes on two busy cores.
std::chrono::milliseconds timeout_for(int signal) {
  if (signal == SIGKILL) return std::chrono::seconds(20);
  return std::chrono::milliseconds(kSanitized ? 8000 : 6000);
}

/// Repeats `call` until it fails.
Error first_error(ProcessGroup& group, const Call& call) {
  for (int i = 0; i < 100'000; ++i) {
    try {
      call(group);
    } catch (const Error& error) {
      return error;
    }
  }
  throw std::runtime_error("nobody noticed");
}

/// "ranks 0, 2 did not come" has "rank 0" and "rank 2".
bool is_listed(const Error& error, const std::string& name) {
  const std::regex list("ranks? ([0-9]+, )*" + name.substr(std::string("rank ").size()) + "\\b");
  return std::regex_search(cause_of(error.what()), list);
}

void expect_group_error(ProcessGroup& group, const Call& call, ErrorCode code,
                        const std::string& name, bool makes_groups = false) {
  const Error error = first_error(group, call);
  require(error.code() == code, fmt::format("wrong error: {}", error.what()));
  const bool is_first = cause_of(error.what()).starts_with(name);
  require(is_first || code != ErrorCode::kTimeout || makes_groups, error.what());
  if (makes_groups) return require(is_listed(error, name), error.what());
  require(has_name(error, name), error.what());
  const Error again = first_error(group, call);
  require(std::string(again.what()) == error.what(), "another error afterwards");
}

/// Shared by all processes of a test.
struct Board {
  std::atomic<pid_t> victim;
  std::atomic<int> survivors;
};

/// `victim` is struck while all ranks repeat calls()[call]: in its `at`-th `point` or, without one,
/// after some time.
struct Strike {
  HostLayout hosts;
  int victim;
  size_t call;
  int signal;
  std::chrono::milliseconds after{};
  std::optional<FaultPoint> point;
  int at = 1;
};

std::string to_string(const Strike& one) {
  return fmt::format("rank {} in call {}, {} hosts, signal {}, after {} ms, point {} at {}",
                     one.victim, one.call, one.hosts.size(), one.signal, one.after.count(),
                     one.point ? static_cast<int>(*one.point) : -1, one.at);
}

// For the victim's process; set before the hook.
int strike_victim;
int strike_signal;
FaultPoint strike_point;
std::atomic<int> strike_countdown;

void strike_at_point(int world_rank, OpKind /*kind*/, FaultPoint point) {
  if (world_rank == strike_victim && point == strike_point && --strike_countdown == 0) {
    ::kill(::getpid(), strike_signal);
  }
}

/// Called by the victim when all ranks are about to start.
void arm(int victim, int signal, FaultPoint point, int at) {
  strike_victim = victim;
  strike_signal = signal;
  strike_point = point;
  strike_countdown = at;
  fault_hook = strike_at_point;
}

void arm(const Strike& one) {
  if (one.point) return arm(one.victim, one.signal, *one.point, one.at);
  std::thread([one] {
    std::this_thread::sleep_for(one.after);
    ::kill(::getpid(), one.signal);
  }).detach();
}

/// A rank that leaves while others wait in a group that still works for it ends their wait.
void stay_with_others(const Board& board, int survivors) {
  const auto limit = Deadline::after(20s);
  while (board.survivors < survivors && !limit.passed()) ::usleep(1000);
}

void strike_during(const Strike& one) {
  const Tried tried = calls()[one.call];
  const ErrorCode want = one.signal == SIGKILL ? ErrorCode::kPeerLost : ErrorCode::kTimeout;
  const auto timeout = timeout_for(one.signal);
  const Shared<Board> board;
  const auto ends = run_rank_processes(
      one.hosts,
      [&](const World& world) {
        auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(20)});
        auto struck = ProcessGroup::create(world, {.timeout = timeout});
        tried.call(struck);
        group.barrier();
        if (world.rank == one.victim) {
          board->victim = ::getpid();
          arm(one);
        }
        expect_group_error(struck, tried.call, want, fmt::format("rank {}", one.victim),
                           tried.makes_groups);
        if (++board->survivors == world.size - 1) ::kill(board->victim, SIGKILL);
        if (tried.makes_groups && one.signal == SIGSTOP) stay_with_others(*board, world.size - 1);
      },
      std::chrono::seconds(60));
  for (int rank = 0; rank < static_cast<int>(ends.size()); ++rank) {
    EXPECT_EQ(ends[static_cast<size_t>(rank)], rank == one.victim ? -SIGKILL : 0)
        << "rank " << rank << ": " << to_string(one);
  }
}

/// In turn the first rank, the second and the last.
int victim_of(const HostLayout& hosts, size_t turn) {
  const int ranks = std::accumulate(hosts.begin(), hosts.end(), 0);
  return std::array{1, 0, ranks - 1}[turn % 3];
}

constexpr size_t kAtOnce = kSanitized ? 4 : 9;

/// Every call, at each of these moments.
std::vector<Strike> all_strikes(int signal, const std::vector<int>& moments_ms) {
  std::vector<Strike> strikes;
  for (const HostLayout& hosts : {HostLayout{1, 1, 1}, HostLayout{2, 2}}) {
    if (kSanitized && hosts.size() > 2) continue;
    for (size_t at = 0; at < moments_ms.size(); ++at) {
      const std::chrono::milliseconds moment(moments_ms[at]);
      for (size_t call = 0; call < calls().size(); ++call) {
        if (kSanitized && call > kBarrier) continue;
        const int victim = victim_of(hosts, at + call + hosts.size());
        strikes.push_back({hosts, victim, call, signal, moment, {}, 1});
      }
    }
  }
  return strikes;
}

/// Four hosts: a rank gets the data of most others through another.
std::vector<Strike> strikes_of_pairs(int signal) {
  std::vector<Strike> strikes;
  for (const size_t call : {kSmallAllReduce, kBarrier})
    strikes.push_back({{1, 1, 1, 1}, victim_of({1, 1, 1, 1}, call), call, signal, 8ms, {}, 1});
  return strikes;
}

TEST(HierarchicalFailure, EverybodyNamesARankThatWasKilled) {
  const auto moments = kSanitized ? std::vector{30} : std::vector{1, 8, 30};
  auto strikes = all_strikes(SIGKILL, moments);
  const auto of_pairs = strikes_of_pairs(SIGKILL);
  strikes.insert(strikes.end(), of_pairs.begin(), of_pairs.end());
  run_forked(strikes, kAtOnce, strike_during);
}

TEST(HierarchicalFailure, EverybodyNamesARankThatWasFrozen) {
  auto strikes = all_strikes(SIGSTOP, {30});
  const auto of_pairs = strikes_of_pairs(SIGSTOP);
  strikes.insert(strikes.end(), of_pairs.begin(), of_pairs.end());
  run_forked(strikes, kAtOnce, strike_during);
}

/// Every call in each of its points, the first time and later.
std::vector<Strike> strikes_in_phases(int signal) {
  std::vector<Strike> strikes;
  size_t turn = 0;
  for (const FaultPoint point : {FaultPoint::kExchanging, FaultPoint::kSending,
                                 FaultPoint::kReceiving, FaultPoint::kExchanged}) {
    const auto all = calls();
    ++turn;  // another rank in the next point of a call
    for (size_t call = 0; call < all.size(); ++call) {
      const int victim = victim_of({1, 1, 1}, turn + call);
      if (point == FaultPoint::kSending && !all[call].sends(victim)) continue;
      if (point == FaultPoint::kReceiving && !all[call].receives(victim)) continue;
      if (kSanitized && call != kLargeAllReduce) continue;
      strikes.push_back({{1, 1, 1}, victim, call, signal, {}, point, 1});
    }
    const HostLayout hosts = {2, 2};
    if (!kSanitized)
      strikes.push_back({hosts, victim_of(hosts, turn), kLargeAllReduce, signal, {}, point, 4});
  }
  return strikes;
}

TEST(HierarchicalFailure, EverybodyNamesARankThatWasKilledInAPhase) {
  run_forked(strikes_in_phases(SIGKILL), kAtOnce, strike_during);
}

TEST(HierarchicalFailure, EverybodyNamesARankThatWasFrozenInAPhase) {
  run_forked(strikes_in_phases(SIGSTOP), kAtOnce, strike_during);
}

/// Ranks that time out long before others that wait as well.
struct Staggered {
  HostLayout hosts;
  int frozen;
  int later;  // begins to wait when most of the others have timed out
  size_t call;
};

void name_only_the_frozen(const Staggered& one) {
  const Call call = calls()[one.call].call;
  const Shared<Board> board;
  const auto timeout = timeout_for(SIGSTOP);
  const auto ends = run_rank_processes(one.hosts, [&](const World& world) {
    auto group = ProcessGroup::create(world, {.timeout = timeout});
    call(group);
    group.barrier();
    if (world.rank == one.frozen) {
      board->victim = ::getpid();
      ::kill(::getpid(), SIGSTOP);
    }
    if (world.rank == one.later) std::this_thread::sleep_for(timeout * 3 / 4);
    expect_group_error(group, call, ErrorCode::kTimeout, fmt::format("rank {} ", one.frozen));
    if (++board->survivors == world.size - 1) ::kill(board->victim, SIGKILL);
  });
  for (size_t rank = 0; rank < ends.size(); ++rank) {
    EXPECT_EQ(ends[rank], static_cast<int>(rank) == one.frozen ? -SIGKILL : 0)
        << "rank " << rank << " of " << one.hosts.size() << " hosts, call " << one.call;
  }
}

// Rank 2 waits in turn for rank 3 on its own host; or, ahead of rank 0, for rank 0 to take data.
TEST(HierarchicalFailure, WhoWaitsIsNotLateHoweverLateItCame) {
  constexpr size_t kReduce = 9;
  std::vector<Staggered> all = {{{2, 2}, 3, 2, kLargeAllReduce}, {{2, 2}, 3, 2, kBarrier}};
  if (!kSanitized) all.push_back({{1, 1, 1}, 1, 2, kReduce});
  run_forked(all, kAtOnce, name_only_the_frozen);
}

/// On four hosts, `ranks` make a call of their own while the others reduce few bytes in pairs.
struct Different {
  std::vector<int> ranks;
  Call call;
};

void end_by_mismatch(const Different& one) {
  const auto ends = run_rank_processes({1, 1, 1, 1}, [&](const World& world) {
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(60)});
    group.barrier();
    const auto& ranks = one.ranks;
    const bool differs = std::find(ranks.begin(), ranks.end(), world.rank) != ranks.end();
    const Error error = first_error(group, differs ? one.call : calls()[kSmallAllReduce].call);
    require(error.code() == ErrorCode::kMismatch, error.what());
  });
  EXPECT_EQ(ends, (std::vector<int>{0, 0, 0, 0}))
      << fmt::format("ranks {}", fmt::join(one.ranks, " "));
}

/// Also if the differing ranks send nothing, or to one rank only, or do not wait.
TEST(HierarchicalFailure, NobodyWaitsInVainForWhoCalledSomethingElse) {
  std::vector<Different> all;
  for (const auto& ranks : {std::vector{3}, std::vector{0}, std::vector{2, 3}, std::vector{1, 2}}) {
    for (const int root : {0, 3}) {
      all.push_back({ranks, [root](ProcessGroup& group) {
                       group.reduce(call_in.data(), 5, kCallType, ReduceOp::kSum, root).wait();
                     }});
      all.push_back({ranks, [root](ProcessGroup& group) {
                       group.broadcast(call_in.data(), 5, kCallType, root).wait();
                     }});
    }
    all.push_back({ranks, calls()[kBarrier].call});
    if (kSanitized) break;
  }
  run_forked(all, kAtOnce, end_by_mismatch);
}

/// Strikes rank 1 in a transfer to (from) rank 0 on another host.
struct TransferStrike {
  bool sends;
  int64_t count;
  int signal;
  FaultPoint point;
};

void strike_transfer(const TransferStrike& one) {
  const Shared<Board> board;
  const ErrorCode want = one.signal == SIGKILL ? ErrorCode::kPeerLost : ErrorCode::kTimeout;
  const auto ends = run_rank_processes({1, 1}, [&](const World& world) {
    const auto timeout = timeout_for(one.signal);
    auto group = ProcessGroup::create(world, {.timeout = timeout});
    std::vector<float> data(static_cast<size_t>(one.count));
    const bool sends = one.sends == (world.rank == 1);
    const Call transfer = [&](ProcessGroup& within) {
      auto work = sends ? within.send(data.data(), one.count, DType::kFloat32, 1 - world.rank)
                        : within.recv(data.data(), one.count, DType::kFloat32, 1 - world.rank);
      work.wait();
    };
    transfer(group);
    group.barrier();
    if (world.rank == 1) {
      board->victim = ::getpid();
      arm(1, one.signal, one.point, 1);
    }
    const Error error = first_error(group, transfer);
    require(error.code() == want, error.what());
    require(has_name(error, "rank 1"), error.what());
    ::kill(board->victim, SIGKILL);
  });
  EXPECT_EQ(ends, (std::vector<int>{0, -SIGKILL}))
      << (one.sends ? "send" : "recv") << " of " << one.count << ", signal " << one.signal
      << ", point " << static_cast<int>(one.point);
}

TEST(HierarchicalFailure, TransfersNameARankThatWasStruckInAPhase) {
  std::vector<TransferStrike> strikes;
  for (const int signal : {SIGKILL, SIGSTOP}) {
    for (const bool sends : {false, true}) {
      const FaultPoint midway = sends ? FaultPoint::kSending : FaultPoint::kReceiving;
      for (const FaultPoint point : {FaultPoint::kExchanging, midway, FaultPoint::kExchanged})
        strikes.push_back({sends, 1 << 20, signal, point});
      // Data sent to a frozen rank first fills the kernel's buffers.
      if (sends || signal == SIGKILL)
        strikes.push_back({sends, 5, signal, FaultPoint::kExchanging});
    }
  }
  run_forked(strikes, kAtOnce, strike_transfer);
}

TEST(HierarchicalFailure, PointToPointNoticesDeathOnAnotherHost) {
  const auto ends = run_rank_processes({1, 2}, [](const World& world) {
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(20)});
    group.barrier();
    if (world.rank == 2) ::raise(SIGKILL);
    float data = 0;
    try {
      group.recv(&data, 1, DType::kFloat32, 2).wait();
    } catch (const Error& error) {
      require(error.code() == ErrorCode::kPeerLost, error.what());
      require(has_name(error, "rank 2"), error.what());
      return;
    }
    throw std::runtime_error("nobody noticed");
  });
  EXPECT_EQ(ends, (std::vector<int>{0, 0, -SIGKILL}));
}

/// Rank 1 forks a child that lives on without it.
TEST(HierarchicalFailure, AForkedHelperDoesNotHideADeath) {
  for (const HostLayout& hosts : {HostLayout{1, 1}, HostLayout{2}}) {
    const Shared<std::atomic<pid_t>> helper;
    const auto ends = run_rank_processes(hosts, [&](const World& world) {
      auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(20)});
      float data = 0;
      group.barrier();
      if (world.rank == 1) {
        const pid_t child = ::fork();
        if (child == 0) {
          while (true) ::pause();
        }
        *helper = child;
        ::raise(SIGKILL);
      }
      Work message = group.recv(&data, 1, kCallType, 1);
      const auto start = std::chrono::steady_clock::now();
      const Error error = first_error(group, [](ProcessGroup& in) { in.barrier(); });
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      require(error.code() == ErrorCode::kPeerLost, error.what());
      require(has_name(error, "rank 1"), error.what());
      require(took.count() < 10, fmt::format("took {} s", took.count()));
    });
    ::kill(*helper, SIGKILL);
    EXPECT_EQ(ends, (std::vector<int>{0, -SIGKILL}));
  }
}

TEST(HierarchicalFailure, AForkedChildMayUnwindAndIsToldThatTheGroupIsNotItsOwn) {
  const auto ends = run_rank_processes({1, 1}, [](const World& world) {
    pid_t child = -1;
    {
      auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(20)});
      float data[4] = {};
      // Threads of every kind exist.
      group.all_reduce(data, 4, kCallType, ReduceOp::kSum, {.async = true}).wait();
      float received[4];
      Work message = group.recv(received, 4, kCallType, 1 - world.rank);
      group.send(data, 4, kCallType, 1 - world.rank).wait();
      message.wait();
      child = ::fork();
      if (child == 0) {
        ::alarm(20);
        try {
          group.barrier();
        } catch (const Error& error) {
          if (error.code() != ErrorCode::kInvalidArgument) ::_exit(2);
        }
      } else {
        group.barrier();
      }
    }
    if (child == 0) ::_exit(0);
    int status = -1;
    require(::waitpid(child, &status, 0) == child && status == 0, "the child did not end well");
  });
  EXPECT_EQ(ends, (std::vector<int>{0, 0}));
}

// CPU time, so a busy machine does not matter.
TEST(HierarchicalFailure, WaitingForAnotherHostCostsUnderATwentiethOfACore) {
  const auto ends = run_rank_processes({1, 1}, [](const World& world) {
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(30)});
    group.barrier();
    if (world.rank == 1) std::this_thread::sleep_for(std::chrono::seconds(1));
    rusage before;
    rusage after;
    ::getrusage(RUSAGE_SELF, &before);
    float data = 1;
    group.all_reduce(&data, 1, DType::kFloat32, ReduceOp::kSum).wait();
    ::getrusage(RUSAGE_SELF, &after);
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    const double used = seconds(after.ru_utime) + seconds(after.ru_stime) -
                        seconds(before.ru_utime) - seconds(before.ru_stime);
    require(used < 0.05, fmt::format("used {} s", used));
  });
  EXPECT_EQ(ends, (std::vector<int>{0, 0}));
}

}  // namespace
}  // namespace lockstep::testing
