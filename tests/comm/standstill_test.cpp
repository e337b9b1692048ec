// A whole job that is frozen for longer than its timeout, and then thaws, continues: a rank that
// stood still did not wait.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "lockstep/process_group.h"
#include "tests/comm/support/conformance.h"
#include "tests/comm/support/forked.h"
#include "tests/support/ranks.h"

namespace lockstep::testing {
namespace {

using namespace std::chrono_literals;

/// Enough for a call of some processes on two busy cores.
constexpr auto kTimeout = kSanitized ? 12s : 6s;
constexpr int64_t kMany = 3 << 20;
constexpr size_t kAtOnce = 7;

/// Shared by all processes of a case.
struct Board {
  std::atomic<int> waiting;  ///< Ranks that are about to wait for the last one.
  std::atomic<bool> thawed;
};

using Call = std::function<void(ProcessGroup&)>;

struct Frozen {
  HostLayout hosts;
  const char* name;
  Call call;  ///< Null: the group's creation.
};

void all_reduce(ProcessGroup& group, int64_t count) {
  std::vector<float> data(static_cast<size_t>(count), 1.0F);
  group.all_reduce(data.data(), count, DType::kFloat32, ReduceOp::kSum).wait();
  require(data.back() == static_cast<float>(group.size()), "a wrong sum");
}

/// The last rank is late, and sends to (or receives from) all others.
void messages(ProcessGroup& group, int64_t count, bool late_sends) {
  const int late = group.size() - 1;
  std::vector<float> data(static_cast<size_t>(count), 1.0F);
  if (group.rank() != late) {
    auto work = late_sends ? group.recv(data.data(), count, DType::kFloat32, late)
                           : group.send(data.data(), count, DType::kFloat32, late);
    return work.wait();
  }
  for (int rank = 0; rank < late; ++rank) {
    auto work = late_sends ? group.send(data.data(), count, DType::kFloat32, rank)
                           : group.recv(data.data(), count, DType::kFloat32, rank);
    work.wait();
  }
}

void come_last(Board& board) {
  while (!board.thawed) std::this_thread::sleep_for(10ms);
}

void take_part(const World& world, const Frozen& one, Board& board) {
  const bool late = world.rank == world.size - 1;
  const auto arrive = [&] {
    if (late) return come_last(board);
    ++board.waiting;
  };
  if (!one.call) arrive();
  auto group = ProcessGroup::create(world, {.timeout = kTimeout});
  if (one.call) {
    one.call(group);
    group.barrier();
    arrive();
    one.call(group);
  }
  group.barrier();
  all_reduce(group, kMany);
}

/// Stops all ranks while all but the last wait for it; it is the last to continue.
void freeze_all(const std::vector<int>& pids, Board& board) {
  while (board.waiting < static_cast<int>(pids.size()) - 1) std::this_thread::sleep_for(10ms);
  std::this_thread::sleep_for(500ms);  // a rank that does not wait yet makes the case easier
  for (const int pid : pids) ::kill(pid, SIGSTOP);
  std::this_thread::sleep_for(kTimeout + 2s);
  for (size_t i = 0; i + 1 < pids.size(); ++i) ::kill(pids[i], SIGCONT);
  std::this_thread::sleep_for(500ms);
  board.thawed = true;
  ::kill(pids.back(), SIGCONT);
}

void freeze_and_thaw(const Frozen& one) {
  const Shared<Board> board;
  const auto ends = run_rank_processes(
      one.hosts, [&](const World& world) { take_part(world, one, *board); }, 60s,
      [&](const std::vector<int>& pids) { freeze_all(pids, *board); });
  EXPECT_EQ(ends, std::vector<int>(ends.size(), 0))
      << one.name << " on " << one.hosts.size() << " hosts";
}

std::vector<Frozen> all_cases(const HostLayout& hosts) {
  const auto reduced = [](int64_t count) {
    return [count](ProcessGroup& group) { all_reduce(group, count); };
  };
  const auto sent = [](int64_t count, bool late_sends) {
    return [=](ProcessGroup& group) { messages(group, count, late_sends); };
  };
  return {{hosts, "creation", nullptr},
          {hosts, "few bytes", reduced(5)},
          {hosts, "many bytes", reduced(kMany)},
          {hosts, "barrier", [](ProcessGroup& group) { group.barrier(); }},
          {hosts, "recv of few", sent(5, true)},
          {hosts, "recv of many", sent(kMany, true)},
          {hosts, "send of many", sent(kMany, false)}};
}

TEST(Standstill, OfAHostsRanksIsNoTimeout) {
  run_forked(all_cases({3}), kAtOnce, freeze_and_thaw);
}

TEST(Standstill, OfAllHostsIsNoTimeout) {
  run_forked(all_cases({1, 1}), kAtOnce, freeze_and_thaw);
}

TEST(Standstill, OfSeveralHostsWithSeveralRanksIsNoTimeout) {
  run_forked(all_cases({2, 1}), kAtOnce, freeze_and_thaw);
}

}  // namespace
}  // namespace lockstep::testing
