// Hosts have no connections until the first call that needs them. A rank that does not enter that
// call, or has ended, must be detected as in any later call.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "lockstep/error.h"
#include "lockstep/process_group.h"
#include "lockstep/world/lives.h"
#include "tests/comm/support/allowance.h"
#include "tests/comm/support/conformance.h"
#include "tests/comm/support/forked.h"
#include "tests/support/error_of.h"

namespace lockstep::testing {
namespace {

using Call = std::function<void(ProcessGroup&)>;
using Clock = std::chrono::steady_clock;

constexpr auto kTimeout = std::chrono::seconds(60);

/// Elements of which each rank of a host carries a part.
constexpr int64_t kMany = 200'000;

void sum(ProcessGroup& group, int64_t count) {
  std::vector<float> data(static_cast<size_t>(count));
  group.all_reduce(data.data(), count, DType::kFloat32, ReduceOp::kSum).wait();
}

void exchange_all(ProcessGroup& group) {
  std::vector<float> in(static_cast<size_t>(5 * group.size()));
  std::vector<float> out(in.size());
  group.all_to_all(in.data(), out.data(), 5, DType::kFloat32).wait();
}

std::vector<Call> calls() {
  return {[](ProcessGroup& group) { group.barrier(); }, [](ProcessGroup& group) { sum(group, 5); },
          [](ProcessGroup& group) { sum(group, kMany); }, exchange_all,
          [](ProcessGroup& group) {
            float value = 0;
            group.broadcast(&value, 1, DType::kFloat32, group.size() - 1).wait();
            group.barrier();
          }};
}

enum class Fate { kDiesFirst, kDiesFirstWithItsPortHeld, kDiesMeanwhile, kLeaves, kIsFrozen };

/// `victim` does not enter the first call of a sub-group; the others wait for it, or come later.
struct Case {
  HostLayout hosts;
  int victim;
  size_t call;
  Fate fate;
};

struct Board {
  std::atomic<int> waiting;
  std::atomic<int> over;
  std::atomic<pid_t> victim;
  std::atomic<Clock::rep> struck;
};

template <class Ready>
void await(const Ready& ready) {
  const auto limit = Deadline::after(kTimeout);
  while (!ready() && !limit.passed()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

double seconds_since(Clock::rep then) {
  return std::chrono::duration<double>(Clock::now().time_since_epoch() - Clock::duration(then))
      .count();
}

bool dies_first(Fate fate) {
  return fate == Fate::kDiesFirst || fate == Fate::kDiesFirstWithItsPortHeld;
}

/// Another process keeps this one's listening sockets open and accepts nobody. fork() would close
/// them there. Plain system calls: a sanitizer's lock may be held for ever in the copy.
void hold_port(int size, Board& board) {
  constexpr int kManyDescriptors = 1024;
  const auto copy = ::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  require(copy >= 0, "clone");
  if (copy > 0) return;
  for (int fd = 0; fd < kManyDescriptors; ++fd) {
    int listens = 0;
    socklen_t size_of_it = sizeof listens;
    ::syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size_of_it);
    if (listens == 0) ::syscall(SYS_close, fd);
  }
  const timespec pause{0, 1'000'000};
  for (int slept = 0; board.over < size - 1 && slept < 60'000; ++slept)
    ::syscall(SYS_nanosleep, &pause, nullptr);
  ::syscall(SYS_exit_group, 0);
}

void meet_its_fate(const World& world, const Case& one, ProcessGroup part, Board& board) {
  board.victim = ::getpid();
  if (one.fate == Fate::kDiesFirstWithItsPortHeld) hold_port(world.size, board);
  if (!dies_first(one.fate)) {
    await([&] { return board.waiting == world.size - 1; });
    ::usleep(50'000);  // most wait by now; the case is valid also if one does not
  }
  board.struck = Clock::now().time_since_epoch().count();
  if (one.fate == Fate::kIsFrozen) ::raise(SIGSTOP);
  if (one.fate != Fate::kLeaves) ::raise(SIGKILL);
  part.destroy();
  await([&] { return board.over == world.size - 1; });
}

/// The part of ranks that enter the call.
void be_told(const World& world, const Case& one, ProcessGroup& part, Board& board) {
  if (dies_first(one.fate)) {
    const auto soon = Deadline::after(kTimeout);
    await([&] { return !dead_ranks(*world.store, {one.victim}, soon).empty(); });
  }
  ++board.waiting;
  const Error error = error_of([&] { calls()[one.call](part); });
  const double took = seconds_since(board.struck);
  const bool silent = one.fate == Fate::kIsFrozen;
  require(error.code() == (silent ? ErrorCode::kTimeout : ErrorCode::kPeerLost), error.what());
  require(has_name(error, fmt::format("rank {}", one.victim)), error.what());
  require(took < allowed(silent ? 5 : 1), fmt::format("took {:.2f} s: {}", took, error.what()));
  if (++board.over == world.size - 1 && silent) ::kill(board.victim, SIGKILL);
  await([&] { return board.over == world.size - 1; });
}

void wait_in_vain(const Case& one) {
  const Shared<Board> board;
  const auto ends = run_rank_processes(one.hosts, [&](const World& world) {
    const auto timeout = one.fate == Fate::kIsFrozen ? std::chrono::seconds(2) : kTimeout;
    auto group = ProcessGroup::create(world, {.timeout = timeout});
    std::vector<int> all;
    for (int rank = world.size; rank-- > 0;) all.push_back(rank);
    auto part = group.subgroup(all);
    if (world.rank == one.victim) return meet_its_fate(world, one, part, *board);
    be_told(world, one, part, *board);
  });
  for (size_t rank = 0; rank < ends.size(); ++rank) {
    const bool dies = static_cast<int>(rank) == one.victim && one.fate != Fate::kLeaves;
    EXPECT_EQ(ends[rank], dies ? -SIGKILL : 0)
        << "rank " << rank << ", victim " << one.victim << " of " << one.hosts.size()
        << " hosts, call " << one.call << ", fate " << static_cast<int>(one.fate);
  }
}

constexpr size_t kAtOnce = 4;

std::vector<Case> all_cases(Fate fate) {
  std::vector<Case> cases;
  for (const HostLayout& hosts : {HostLayout{1, 1, 1}, HostLayout{2, 2}}) {
    const int last = hosts.size() == 3 ? 2 : 3;
    for (size_t call = 0; call < calls().size(); ++call) {
      for (const int victim : {0, 1, last}) {
        if (kSanitized && (call % 2 != 0 || victim == 1)) continue;
        cases.push_back({hosts, victim, call, fate});
      }
    }
  }
  return cases;
}

TEST(FirstCall, ARankThatDiedBeforeItIsNamedAtOnce) {
  run_forked(all_cases(Fate::kDiesFirst), kAtOnce, wait_in_vain);
}

TEST(FirstCall, ARankThatDiedIsNamedAtOnceAlthoughItsPortIsHeld) {
  std::vector<Case> cases = all_cases(Fate::kDiesFirstWithItsPortHeld);
  std::erase_if(cases, [](const Case& one) { return one.call % 2 != 0; });
  cases.push_back({{1, 1}, 0, 0, Fate::kDiesFirstWithItsPortHeld});
  cases.push_back({{1, 1}, 1, 0, Fate::kDiesFirstWithItsPortHeld});
  run_forked(cases, kAtOnce, wait_in_vain);
}

TEST(FirstCall, ARankThatDiesWhileItIsWaitedForIsNamedAtOnce) {
  run_forked(all_cases(Fate::kDiesMeanwhile), kAtOnce, wait_in_vain);
}

TEST(FirstCall, ARankThatEndsItsGroupInsteadIsNamedAtOnce) {
  run_forked(all_cases(Fate::kLeaves), kAtOnce, wait_in_vain);
}

TEST(FirstCall, ARankThatIsFrozenIsNamedWhenTimeIsOver) {
  std::vector<Case> cases = all_cases(Fate::kIsFrozen);
  std::erase_if(cases, [](const Case& one) { return one.call % 2 != 0; });
  run_forked(cases, kAtOnce, wait_in_vain);
}

/// One of the ranks calls something else.
void differ(const Case& one) {
  const auto ends = run_rank_processes(one.hosts, [&](const World& world) {
    auto group = ProcessGroup::create(world, {.timeout = kTimeout});
    const size_t other = (one.call + 1) % (calls().size() - 1);
    const Error error =
        error_of([&] { calls()[world.rank == one.victim ? other : one.call](group); });
    require(error.code() == ErrorCode::kMismatch, error.what());
    require(has_name(error, fmt::format("rank {}", one.victim)), error.what());
  });
  EXPECT_EQ(ends, std::vector<int>(ends.size(), 0))
      << "rank " << one.victim << " of " << one.hosts.size() << " hosts, call " << one.call;
}

TEST(FirstCall, OneThatDiffersIsToldWithoutWaiting) {
  std::vector<Case> cases = all_cases(Fate::kLeaves);
  std::erase_if(cases, [](const Case& one) { return one.call == 4 || one.hosts.size() != 3; });
  run_forked(cases, kAtOnce, differ);
}

/// Ranks without data for each other do not wait for each other in a call, and connect in the next
/// one.
TEST(FirstCall, EveryKindMayBeTheFirst) {
  for (const HostLayout& hosts : {HostLayout{1, 1, 1}, HostLayout{2, 2}, HostLayout{3, 2}}) {
    run_rank_threads(hosts, [](const World& world) {
      auto group = ProcessGroup::create(world, {.timeout = kTimeout});
      const auto size = static_cast<size_t>(world.size);
      std::vector<int64_t> in(size, world.rank);
      std::vector<int64_t> out(size);
      for (int root = 0; root < world.size; ++root) {
        auto gathers = *group.split(0, world.rank);
        gathers.gather(in.data(), out.data(), 1, DType::kInt64, root).wait();
        if (world.rank == root) require(out.back() == world.size - 1, "gather");
        gathers.barrier();
        auto scatters = *group.split(0, world.rank);
        scatters.scatter(in.data(), out.data(), 1, DType::kInt64, root).wait();
        require(out[0] == root, "scatter");
        sum(scatters, kMany);
        auto reduces = *group.split(0, world.rank);
        int64_t value = 1;
        reduces.reduce(&value, 1, DType::kInt64, ReduceOp::kSum, root).wait();
        if (world.rank == root) require(value == world.size, "reduce");
        exchange_all(reduces);
        auto allocates = *group.split(0, world.rank);
        allocates.allocate(100);
        sum(allocates, kMany);
      }
    });
  }
}

}  // namespace
}  // namespace lockstep::testing
