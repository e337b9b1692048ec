// Overlapping groups, such as those of a mesh. A rank is killed or frozen, and the ranks of all
// groups must name it, although some wait for healthy ranks that only wait themselves.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/error.h"
#include "lockstep/process_group.h"
#include "lockstep/store/tcp/tcp_store.h"
#include "lockstep/world/lives.h"
#include "tests/comm/support/allowance.h"
#include "tests/comm/support/conformance.h"
#include "tests/comm/support/forked.h"

namespace lockstep::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRanks = 4;
constexpr int kTurn = 3;                                 // in which the victim is struck
constexpr auto kLongTimeout = std::chrono::seconds(60);  // no rank should wait for it
constexpr auto kTimeout = std::chrono::milliseconds(kSanitized ? 6000 : 2500);

struct Case {
  HostLayout hosts;
  int victim;
  bool before_column;  ///< Else before the row's call.
  int signal;
  bool forks_helper = false;  ///< Before it is struck; the helper lives on.
  bool serves_store = false;  ///< Rank 0 does, as for ranks that no agent started.
};

/// Shared by all processes of a case.
struct Board {
  std::atomic<pid_t> victim;
  std::atomic<pid_t> helper;
  std::atomic<Clock::rep> fell;
  std::atomic<int> done;
};

std::string to_string(const Case& one) {
  return fmt::format("{} host(s), rank {} before its {}, signal {}", one.hosts.size(), one.victim,
                     one.before_column ? "column" : "row", one.signal);
}

/// Ranks 0 1 / 2 3: rows and columns.
class Mesh {
 public:
  Mesh(const World& world, std::chrono::milliseconds timeout)
      : all_(ProcessGroup::create(world, {.timeout = timeout})),
        row_(all_.subgroup({world.rank / 2 * 2, world.rank / 2 * 2 + 1})),
        column_(all_.subgroup({world.rank % 2, world.rank % 2 + 2})) {}

  void call_row() { call(row_); }
  void call_column() { call(column_); }

  /// One of ranks 0 and 1, which call the row, leaves it.
  void leave_row() { row_.destroy(); }
  void require_row_lost(const std::string& how = "") {
    try {
      call(row_);
      require(false, "a row goes on without a rank that left it");
    } catch (const Error& error) {
      require(error.code() == ErrorCode::kPeerLost && has_name(error, how), error.what());
    }
  }

  /// Groups that the survivors make now work, and still do after a use of old ones.
  void require_later_groups_good(int victim) {
    std::vector<int> survivors = {0, 1, 2, 3};
    std::erase(survivors, victim);
    auto later = all_.subgroup(survivors);
    for (int turn = 0; turn < 3; ++turn) {
      require_all_failed(fmt::format("rank {}", victim));
      call(later);
    }
  }

  /// The errors of calls once the group has failed.
  void require_all_failed(const std::string& name) {
    for (ProcessGroup* const group : {&all_, &row_, &column_}) {
      try {
        call(*group);
        require(false, "a group goes on without " + name);
      } catch (const Error& error) {
        require(error.code() == ErrorCode::kPeerLost && has_name(error, name), error.what());
      }
    }
  }

 private:
  static void call(ProcessGroup& group) {
    float value = 1;
    group.all_reduce(&value, 1, DType::kFloat32, ReduceOp::kSum).wait();
  }

  ProcessGroup all_;
  ProcessGroup row_;
  ProcessGroup column_;
};

void fall(const Case& one, Board& board) {
  if (one.forks_helper) {
    const pid_t helper = ::fork();
    if (helper == 0) {
      for (;;) ::pause();
    }
    board.helper = helper;
  }
  board.fell = Clock::now().time_since_epoch().count();
  ::kill(::getpid(), one.signal);
}

void call_for_ever(Mesh& mesh, const World& world, const Case& one, Board& board) {
  for (int turn = 0;; ++turn) {
    const bool falls = world.rank == one.victim && turn == kTurn;
    if (falls && !one.before_column) fall(one, board);
    mesh.call_row();
    if (falls && one.before_column) fall(one, board);
    mesh.call_column();
  }
}

void survive(Mesh& mesh, const World& world, const Case& one, Board& board) {
  const auto name = fmt::format("rank {}", one.victim);
  const bool killed = one.signal == SIGKILL;
  try {
    call_for_ever(mesh, world, one, board);
  } catch (const Error& error) {
    const auto since = Clock::now().time_since_epoch().count() - board.fell;
    const double took = static_cast<double>(since) / 1e9;
    const double time = killed ? 0 : std::chrono::duration<double>(kTimeout).count();
    require(error.code() == (killed ? ErrorCode::kPeerLost : ErrorCode::kTimeout), error.what());
    require(has_name(error, name), fmt::format("{} does not name {}", error.what(), name));
    require(took < time + allowed(1), fmt::format("took {:.2f} s: {}", took, error.what()));
    if (killed) mesh.require_all_failed(name);
    if (killed && !one.serves_store) mesh.require_later_groups_good(one.victim);
  }
}

/// No rank ends before all have their error: a rank that ends is lost to the others, too. The last
/// to come ends a frozen rank.
void end_together(Board& board, int ranks, int signal = 0) {
  if (++board.done == ranks && signal == SIGSTOP) ::kill(board.victim, SIGKILL);
  const auto limit = Clock::now() + kLongTimeout / 2;
  while (board.done < ranks && Clock::now() < limit) ::usleep(1000);
}

/// `world` with a store that rank 0 serves; its server is put into `server`.
World with_store_of_rank_0(World world, std::optional<TcpStoreServer>* server) {
  const auto soon = Deadline::after(kLongTimeout / 2);
  if (world.rank == 0) {
    server->emplace(TcpStoreServerOptions{"127.0.0.1", 0, world.secret});
    world.store->set("port", std::to_string((*server)->port()), soon);
  }
  const int port = std::stoi(world.store->get("port", soon));
  world.store = connect_tcp_store({"127.0.0.1", port}, world.secret, soon);
  show_life(*world.store, world.rank, soon);
  return world;
}

void run_case(const Case& one) {
  const Shared<Board> board;
  const auto ends = run_rank_processes(one.hosts, [&](World world) {
    if (world.rank == one.victim) board->victim = ::getpid();
    std::optional<TcpStoreServer> server;
    if (one.serves_store) world = with_store_of_rank_0(world, &server);
    Mesh mesh(world, one.signal == SIGKILL ? kLongTimeout : kTimeout);
    survive(mesh, world, one, *board);
    end_together(*board, kRanks - 1, one.signal);
  });
  if (board->helper > 0) ::kill(board->helper, SIGKILL);
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(ends[static_cast<size_t>(rank)], rank == one.victim ? -SIGKILL : 0)
        << "rank " << rank << ": " << to_string(one);
  }
}

std::vector<Case> all_cases(int signal) {
  std::vector<Case> cases;
  for (const HostLayout& hosts : {HostLayout{4}, HostLayout{2, 2}, HostLayout{1, 2, 1}}) {
    for (int victim = 0; victim < kRanks; ++victim) {
      if (kSanitized && victim % 3 != 0) continue;
      for (const bool before_column : {false, true}) {
        cases.push_back({hosts, victim, before_column, signal});
      }
    }
  }
  return cases;
}

TEST(MeshFailure, AKilledRankIsNamedInAllGroups) {
  run_forked(all_cases(SIGKILL), 4, run_case);
}

TEST(MeshFailure, AForkedHelperHidesNoDeath) {
  for (const HostLayout& hosts : {HostLayout{4}, HostLayout{1, 2, 1}}) {
    run_case({.hosts = hosts,
              .victim = 1,
              .before_column = true,
              .signal = SIGKILL,
              .forks_helper = true});
  }
}

TEST(MeshFailure, ARankThatServesTheStoreIsNamedInAllGroups) {
  for (const HostLayout& hosts : {HostLayout{4}, HostLayout{2, 2}, HostLayout{1, 2, 1}}) {
    for (const bool forks_helper : {false, true}) {
      run_case({.hosts = hosts,
                .victim = 0,
                .before_column = true,
                .signal = SIGKILL,
                .forks_helper = forks_helper,
                .serves_store = true});
    }
  }
}

/// A rank that leaves a group in use by others is not dead: their other groups continue.
TEST(MeshFailure, WhoOnlyLeavesAGroupEndsNoOther) {
  for (const HostLayout& hosts : {HostLayout{4}, HostLayout{2, 2}, HostLayout{1, 2, 1}}) {
    const Shared<Board> board;
    const auto ends = run_rank_processes(hosts, [&](const World& world) {
      Mesh mesh(world, kLongTimeout);
      mesh.call_row();
      if (world.rank == 0) mesh.leave_row();
      if (world.rank == 1) mesh.require_row_lost();
      for (int turn = 0; turn < 3; ++turn) mesh.call_column();
      end_together(*board, kRanks);
    });
    EXPECT_EQ(ends, (std::vector<int>{0, 0, 0, 0})) << hosts.size() << " host(s)";
  }
}

/// Rank 0 has nothing more to do, and ends; rank 1 waits for it by mistake, and only there.
TEST(MeshFailure, WhoEndsInGoodOrderIsNoDeathForOtherGroups) {
  for (const HostLayout& hosts : {HostLayout{4}, HostLayout{2, 2}, HostLayout{1, 2, 1}}) {
    const Shared<Board> board;
    const auto ends = run_rank_processes(hosts, [&](const World& world) {
      Mesh mesh(world, kLongTimeout);
      mesh.call_row();
      if (world.rank == 0) return;
      if (world.rank == 1) {
        const auto soon = Deadline::after(kLongTimeout / 2);
        while (dead_ranks(*world.store, {0}, soon).empty()) ::usleep(1000);
        mesh.require_row_lost(hosts.front() > 1 ? "ended its process group" : "it left");
      }
      for (int turn = 0; turn < 3 && world.rank != 2; ++turn) mesh.call_column();
      end_together(*board, kRanks - 1);
    });
    EXPECT_EQ(ends, (std::vector<int>{0, 0, 0, 0})) << hosts.size() << " host(s)";
  }
}

/// Rank 2 of this one has ended when the others make a new group with it.
TEST(MeshFailure, ANewGroupTellsOfAMemberThatLeftThatItLeft) {
  for (const HostLayout& hosts : {HostLayout{3}, HostLayout{1, 1, 1}}) {
    const auto ends = run_rank_processes(hosts, [&](const World& world) {
      auto group = ProcessGroup::create(world, {.timeout = kLongTimeout});
      group.barrier();
      if (world.rank == 2) return;
      const auto soon = Deadline::after(kLongTimeout / 2);
      while (dead_ranks(*world.store, {2}, soon).empty()) ::usleep(1000);
      try {
        group.subgroup({0, 1, 2});
        require(false, "made without rank 2");
      } catch (const Error& error) {
        require(error.code() == ErrorCode::kPeerLost && has_name(error, "rank 2 left"),
                error.what());
      }
    });
    EXPECT_EQ(ends, (std::vector<int>{0, 0, 0})) << hosts.size() << " host(s)";
  }
}

TEST(MeshFailure, WhoComesBackOrHasFailedHasNotLeft) {
  for (const HostLayout& hosts : {HostLayout{2}, HostLayout{1, 1}}) {
    run_rank_threads(hosts, [](const World& world) {
      const auto left = [&] {
        return has_left(*world.store, world.rank, Deadline::after(kLongTimeout));
      };
      auto group = ProcessGroup::create(world, {.timeout = kLongTimeout});
      require(!left(), "who has a group has left");
      group.barrier();
      group.destroy();
      require(left(), "who has ended its groups has not left");
      group = ProcessGroup::create(world, {.timeout = kLongTimeout});
      require(!left(), "who has come back has left");
      try {
        float value = 1;
        if (world.rank == 0) group.barrier();
        if (world.rank == 1) group.all_reduce(&value, 1, DType::kFloat32, ReduceOp::kSum).wait();
        require(false, "calls that differ end well");
      } catch (const Error& error) {
        require(error.code() == ErrorCode::kMismatch, error.what());
      }
      group.destroy();
      require(!left(), "who has failed has left");
    });
  }
}

TEST(MeshFailure, AFrozenRankIsNamedInAllGroups) {
  run_forked(all_cases(SIGSTOP), 4, run_case);
}

}  // namespace
}  // namespace lockstep::testing
