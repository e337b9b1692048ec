// A rank is killed while a group is made, before each of its requests to the store in turn. The
// others must name it, long before their timeout.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "lockstep/error.h"
#include "lockstep/process_group.h"
#include "lockstep/world/lives.h"
#include "tests/comm/support/allowance.h"
#include "tests/comm/support/conformance.h"
#include "tests/comm/support/dying_store.h"
#include "tests/comm/support/forked.h"
#include "tests/comm/support/forwarding_store.h"

namespace lockstep::testing {
namespace {

constexpr auto kTimeout = std::chrono::seconds(60);
enum class Made { kFirst, kSplit, kSubgroup };

struct Case {
  HostLayout hosts;
  int victim;
  Made made;
};

struct Board {
  std::atomic<bool> survived;  ///< The victim sent fewer requests.
  std::atomic<int> unaware;    ///< Ranks that made the group.
  std::atomic<std::chrono::steady_clock::rep> killed;
};

std::chrono::steady_clock::rep now() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

/// Makes the group of the case and uses it; calls `made` in between.
void make(const World& world, const Case& one, const std::function<void()>& arm,
          const std::function<void()>& made) {
  const GroupOptions options{.timeout = kTimeout};
  if (one.made == Made::kFirst) arm();
  auto group = ProcessGroup::create(world, options);
  if (one.made == Made::kFirst) made();
  group.barrier();
  if (one.made == Made::kFirst) return;
  arm();
  auto part =
      one.made == Made::kSplit ? *group.split(0, -world.rank) : group.subgroup({3, 1, 0, 2});
  made();
  part.barrier();
}

/// A rank that is not the victim.
void survive(const World& world, const Case& one, Board& board) {
  try {
    make(
        world, one, [] {}, [] {});
    ++board.unaware;
  } catch (const Error& error) {
    const double took = static_cast<double>(now() - board.killed) / 1e9;
    const auto name = fmt::format("rank {}", one.victim);
    require(has_name(error, name), error.what());
    require(took < allowed(1), fmt::format("took {:.2f} s: {}", took, error.what()));
  }
}

void fall(World world, const Case& one, int at, Board& board) {
  const auto store = std::make_shared<DyingStore>(world.store);
  world.store = store;
  board.killed = now();
  try {
    const auto arm = [&] {
      store->die_at(at);
      board.killed = now();
    };
    make(world, one, arm, [&] {
      store->die_at(0);
      board.survived = true;
    });
  } catch (const Error& error) {
    require(false, error.what());
  }
}

/// True if there are later requests at which the victim could die.
bool kill_at(const Case& one, int at) {
  const Shared<Board> board;
  const auto ends = run_rank_processes(one.hosts, [&](const World& world) {
    if (world.rank == one.victim) return fall(world, one, at, *board);
    survive(world, one, *board);
  });
  // One of its threads may be about to kill it when the other has made the group.
  const bool fell = ends[static_cast<size_t>(one.victim)] == -SIGKILL;
  EXPECT_TRUE(fell || board->survived);
  for (size_t rank = 0; rank < ends.size(); ++rank) {
    const bool falls = static_cast<int>(rank) == one.victim && fell;
    EXPECT_EQ(ends[rank], falls ? -SIGKILL : 0)
        << "rank " << rank << ", victim " << one.victim << " at question " << at << " of "
        << one.hosts.size() << " host(s), made " << static_cast<int>(one.made);
  }
  if (fell != board->survived) {
    EXPECT_EQ(board->unaware, fell ? 0 : 3) << "victim " << one.victim << " at " << at;
  }
  return fell && !::testing::Test::HasFailure();
}

void kill_everywhere(const Case& one) {
  int at = 1;
  while (kill_at(one, at)) ++at;
  EXPECT_GT(at, 1);
}

std::vector<Case> all_cases(Made made) {
  std::vector<Case> cases;
  for (const HostLayout& hosts : {HostLayout{4}, HostLayout{2, 2}}) {
    for (int victim = 0; victim < 4; ++victim) {
      if (kSanitized && victim % 3 != 0) continue;
      cases.push_back({hosts, victim, made});
    }
  }
  return cases;
}

constexpr size_t kAtOnce = 4;

TEST(Making, ADeathWhileTheFirstGroupIsMadeIsNamedAtOnce) {
  run_forked(all_cases(Made::kFirst), kAtOnce, kill_everywhere);
}

TEST(Making, ADeathInSplitIsNamedAtOnce) {
  run_forked(all_cases(Made::kSplit), kAtOnce, kill_everywhere);
}

TEST(Making, ADeathWhileASubgroupIsMadeIsNamedAtOnce) {
  run_forked(all_cases(Made::kSubgroup), kAtOnce, kill_everywhere);
}

/// Rank 1 ends because rank 2 died; rank 0, which comes to the next group late, finds both gone.
TEST(Making, WhoEndsBecauseOfADeathIsNotNamedWithIt) {
  for (const HostLayout& hosts : {HostLayout{3}, HostLayout{1, 1, 1}}) {
    const auto ends = run_rank_processes(hosts, [](const World& world) {
      auto group = ProcessGroup::create(world, {.timeout = kTimeout});
      group.barrier();
      if (world.rank == 2) ::kill(::getpid(), SIGKILL);
      if (world.rank == 1) {
        // The kernel may take long to end a process on a busy machine.
        const auto soon = Deadline::after(kTimeout);
        while (dead_ranks(*world.store, {2}, soon).empty()) std::this_thread::yield();
        EXPECT_THROW(group.barrier(), Error);
        return;
      }
      const auto soon = Deadline::after(kTimeout);
      while (dead_ranks(*world.store, {1}, soon).empty()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      try {
        ProcessGroup::create(world, {.timeout = kTimeout});
        require(false, "made without rank 2");
      } catch (const Error& error) {
        require(std::string_view(error.what()).find(": rank 2 died") != std::string_view::npos,
                error.what());
      }
    });
    EXPECT_EQ(ends, (std::vector<int>{0, 0, -SIGKILL}));
  }
}

/// Rank 1 ends because rank 0 died, before it comes to a group of others that rank 2 waits in.
TEST(Making, WhoEndsBecauseOfADeathElsewhereIsNotNamedForIt) {
  for (const HostLayout& hosts : {HostLayout{3}, HostLayout{1, 1, 1}}) {
    const auto ends = run_rank_processes(hosts, [](const World& world) {
      auto group = ProcessGroup::create(world, {.timeout = kTimeout});
      group.barrier();
      if (world.rank == 0) ::kill(::getpid(), SIGKILL);
      if (world.rank == 1) {
        EXPECT_THROW(group.barrier(), Error);
        return;
      }
      try {
        group.subgroup({1, 2});
        require(false, "made without rank 1");
      } catch (const Error& error) {
        require(error.code() == ErrorCode::kPeerLost && has_name(error, "rank 0"), error.what());
      }
    });
    EXPECT_EQ(ends, (std::vector<int>{-SIGKILL, 0, 0}));
  }
}

/// Rank 1 gets as far in the split as rank 0, and then loses the old group with rank 2. It stays,
/// but does not enter the new one.
TEST(Making, WhoWaitsInSplitHearsThatTheOldGroupEndedElsewhere) {
  for (const HostLayout& hosts : {HostLayout{3}, HostLayout{1, 2}, HostLayout{1, 1, 1}}) {
    const Shared<Board> board;
    const auto ends = run_rank_processes(hosts, [&](const World& world) {
      auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(40)});
      group.barrier();
      if (world.rank == 1) {
        const int32_t own[2] = {0, 0};
        int32_t all[6];
        group.all_gather(own, all, 2, DType::kInt32).wait();
        EXPECT_THROW(group.barrier(), Error);
        board->killed = now();
        const auto limit = Deadline::after(kTimeout);
        while (board->unaware == 0 && !limit.passed()) ::usleep(1000);
        return;
      }
      if (world.rank == 2) {
        group.split(ProcessGroup::kNoColor);
        ::kill(::getpid(), SIGKILL);
      }
      try {
        group.split(0);
        require(false, "made without rank 1");
      } catch (const Error& error) {
        const double took = static_cast<double>(now() - board->killed) / 1e9;
        ++board->unaware;
        require(error.code() == ErrorCode::kPeerLost && has_name(error, "rank 2"), error.what());
        require(took < allowed(2), fmt::format("took {:.2f} s: {}", took, error.what()));
      }
    });
    EXPECT_EQ(ends, (std::vector<int>{0, 0, -SIGKILL})) << hosts.size() << " host(s)";
  }
}

/// Rank 1, for which rank 0 waits in the split, waits in the old group for rank 2, a little longer.
void wait_in_split_in_vain(const HostLayout& hosts) {
  const Shared<Board> board;
  const auto expect_rank_2 = [&](const std::function<void()>& call) {
    try {
      call();
      require(false, "it did not wait");
    } catch (const Error& error) {
      ++board->unaware;
      require(error.code() == ErrorCode::kTimeout && has_name(error, "rank 2"), error.what());
    }
  };
  const auto ends = run_rank_processes(hosts, [&](const World& world) {
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(6)});
    group.barrier();
    if (world.rank == 0) return expect_rank_2([&] { group.split(0); });
    if (world.rank == 1) {
      const int32_t own[2] = {0, 0};
      int32_t all[6];
      group.all_gather(own, all, 2, DType::kInt32).wait();
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      return expect_rank_2([&] { group.barrier(); });
    }
    group.split(ProcessGroup::kNoColor);
    const auto limit = Deadline::after(kTimeout);
    while (board->unaware < 2 && !limit.passed()) ::usleep(1000);
  });
  EXPECT_EQ(ends, (std::vector<int>{0, 0, 0})) << hosts.size() << " host(s)";
}

TEST(Making, WhoWaitsInSplitInVainNamesTheRankThatHoldsUpTheOldGroup) {
  run_forked<HostLayout>({{3}, {1, 2}, {1, 1, 1}}, 3, wait_in_split_in_vain);
}

/// Stalls once, at the request for living ranks.
class StallingStore final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  bool check(std::span<const std::string> keys, Deadline deadline) override {
    const bool asks = std::any_of(keys.begin(), keys.end(),
                                  [](const std::string& key) { return key.starts_with("life/"); });
    if (asks && !std::exchange(stalled_, true))
      throw Error(ErrorCode::kTimeout, "the store stalls");
    return ForwardingStore::check(keys, deadline);
  }

 private:
  bool stalled_ = false;
};

TEST(Making, AStoreThatStallsForAMomentEndsNothing) {
  for (const HostLayout& hosts : {HostLayout{3}, HostLayout{1, 1, 1}}) {
    const auto ends = run_rank_processes(hosts, [](World world) {
      world.store = std::make_shared<StallingStore>(world.store);
      if (world.rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(500));
      ProcessGroup::create(world, {.timeout = kTimeout}).barrier();
    });
    EXPECT_EQ(ends, (std::vector<int>{0, 0, 0}));
  }
}

/// A rank that ended its groups is not dead, nor is one that makes the next group later.
TEST(Making, WhoEndsItsGroupsAndComesBackIsNotTakenForDead) {
  const auto ends = run_rank_processes(HostLayout{2, 1}, [](const World& world) {
    for (int turn = 0; turn < 3; ++turn) {
      if (world.rank == turn) std::this_thread::sleep_for(std::chrono::milliseconds(400));
      auto group = ProcessGroup::create(world, {.timeout = kTimeout});
      group.barrier();
      group.destroy();
    }
  });
  EXPECT_EQ(ends, (std::vector<int>{0, 0, 0}));
}

}  // namespace
}  // namespace lockstep::testing
