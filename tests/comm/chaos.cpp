// Kills a rank at a random instant, repeatedly: every survivor must end within a second, and name
// the rank that died.
//
//   comm_chaos [--kills N] [--seed S] [--phase NAME]
//
// Four ranks, on one host and as two on each of two. The victim is killed some instants after it
// has reached a phase: making the first group, or one of the kinds of call below. Each phase runs
// with each rank as the victim and each layout, in a sequence with a random start; 88 kills cover
// all. Ends with a table by phase, and with exit status 1 if a survivor was late, named another
// rank, or ended in another way. On an overloaded machine the allowance is one second times the
// load per core; it is printed.

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "lockstep/error.h"
#include "lockstep/process_group.h"
#include "tests/comm/support/allowance.h"
#include "tests/comm/support/conformance.h"
#include "tests/comm/support/forked.h"
#include "tests/support/ranks.h"

namespace lockstep::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRanks = 4;
constexpr int64_t kCount = 300'000;
constexpr DType kType = DType::kFloat32;
constexpr auto kTimeout = std::chrono::seconds(20);  // no rank should wait for it

constexpr std::array kPhases = {"create",   "all_reduce", "broadcast", "gather",
                                "exchange", "coalesced",  "allocate",  "split",
                                "subgroup", "transfer",   "barrier"};
constexpr int kNumPhases = static_cast<int>(kPhases.size());
constexpr unsigned kKinds = kNumPhases * kRanks * 2;  ///< Of kills: on one host and on several.

int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now().time_since_epoch())
      .count();
}

/// Shared by all processes of a round.
struct Board {
  std::array<std::atomic<int>, kRanks> phase = {};
  std::array<std::atomic<int64_t>, kRanks> ended_us = {};
  std::array<std::array<char, 1024>, kRanks> what = {};
  std::atomic<int64_t> killed_us = 0;
  std::atomic<int> killed_in = 0;
};

/// The calls of a rank until one of its peers is gone.
class Rank {
 public:
  Rank(World world, Board& board) : world_(std::move(world)), board_(board) {}

  void run() {
    enter("create");
    auto group = ProcessGroup::create(world_, {.timeout = kTimeout});
    group.barrier();
    const auto shared = group.allocate(kCount * 4);
    for (int turn = 0;; ++turn) call_all(group, static_cast<float*>(shared->data()), turn);
  }

 private:
  void enter(std::string_view name) {
    const auto* at = std::find(kPhases.begin(), kPhases.end(), name);
    board_.phase[static_cast<size_t>(world_.rank)] = static_cast<int>(at - kPhases.begin());
  }

  void call_all(ProcessGroup& group, float* shared, int turn) {
    enter("all_reduce");
    auto placed = group.all_reduce(shared, kCount, kType, ReduceOp::kSum, {.async = true});
    auto staged = group.all_reduce(in_.data(), kCount, kType, ReduceOp::kAvg, {.async = true});
    placed.wait();
    staged.wait();
    group.all_reduce(in_.data(), 5, kType, ReduceOp::kMax).wait();
    enter("broadcast");
    group.broadcast(in_.data(), kCount, kType, turn % kRanks).wait();
    group.reduce(in_.data(), kCount, kType, ReduceOp::kSum, (turn + 1) % kRanks).wait();
    enter("gather");
    group.all_gather(in_.data(), out_.data(), kCount, kType).wait();
    group.reduce_scatter(out_.data(), in_.data(), kCount, kType, ReduceOp::kSum).wait();
    enter("exchange");
    group.all_to_all(out_.data(), more_.data(), kCount, kType).wait();
    group.scatter(out_.data(), in_.data(), kCount, kType, turn % kRanks).wait();
    enter("coalesced");
    const std::vector<Buffer> buffers = {{in_.data(), 5}, {out_.data(), 7}, {more_.data(), kCount}};
    group.all_reduce_coalesced(buffers, kType, ReduceOp::kSum).wait();
    enter("allocate");
    const auto memory = group.allocate(100'000);
    make_groups(group, turn);
    enter("transfer");
    auto sent = group.send(in_.data(), kCount, kType, (world_.rank + 1) % kRanks);
    auto received = group.recv(out_.data(), kCount, kType, (world_.rank + kRanks - 1) % kRanks);
    sent.wait();
    received.wait();
    enter("barrier");
    group.barrier();
  }

  /// Groups of neighbours, and of all ranks but one.
  void make_groups(ProcessGroup& group, int turn) {
    enter("split");
    auto half = group.split((world_.rank + turn) / 2 % 2);
    half->all_reduce(in_.data(), kCount, kType, ReduceOp::kSum).wait();
    enter("subgroup");
    std::vector<int> ranks = {0, 1, 2, 3};
    std::erase(ranks, turn % kRanks);
    if (std::find(ranks.begin(), ranks.end(), world_.rank) == ranks.end()) return;
    group.subgroup(ranks).all_reduce(in_.data(), kCount, kType, ReduceOp::kSum).wait();
  }

  const World world_;
  Board& board_;
  std::vector<float> in_ = std::vector<float>(kCount);
  std::vector<float> out_ = std::vector<float>(kCount * kRanks);
  std::vector<float> more_ = std::vector<float>(kCount * kRanks);
};

struct Round {
  HostLayout hosts;
  int victim;
  int phase;
  std::chrono::microseconds after;
};

/// A round's result; empty `complaint`: as expected.
struct Outcome {
  int phase = 0;
  double last_ms = 0;  ///< From the kill to the end of the last survivor.
  bool late = false;
  bool wrong = false;
  std::string complaint;
};

void kill_at(const Round& round, Board& board, pid_t victim) {
  const auto limit = Clock::now() + kTimeout;
  const auto& phase = board.phase[static_cast<size_t>(round.victim)];
  while (phase != round.phase && Clock::now() < limit) ::usleep(20);
  std::this_thread::sleep_for(round.after);
  board.killed_in = phase.load();
  board.killed_us = now_us();
  ::kill(victim, SIGKILL);
}

Outcome outcome_of(const Round& round, const Board& board, const std::vector<int>& ends) {
  Outcome outcome;
  outcome.phase = board.killed_in;
  const double allowed_ms = 1000 * allowed(1, 1);
  const std::string name = fmt::format("rank {}", round.victim);
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == round.victim) continue;
    const auto at = static_cast<size_t>(rank);
    const double ms = static_cast<double>(board.ended_us[at] - board.killed_us) / 1e3;
    const std::string what = board.what[at].data();
    const bool named = ends[at] == 0 && cause_of(what).find(name) != std::string::npos;
    outcome.last_ms = std::max(outcome.last_ms, ms);
    outcome.wrong |= !named;
    outcome.late |= ms > allowed_ms;
    if (named && ms <= allowed_ms) continue;
    outcome.complaint +=
        fmt::format("  rank {} ended with {} after {:.0f} ms (allowed {:.0f}): {}\n", rank,
                    ends[at], ms, allowed_ms, what);
  }
  return outcome;
}

Outcome run(const Round& round) {
  const Shared<Board> board;
  for (auto& phase : board->phase) phase = -1;
  const auto body = [&](const World& world) {
    const auto at = static_cast<size_t>(world.rank);
    try {
      Rank(world, *board).run();
    } catch (const Error& error) {
      board->ended_us[at] = now_us();
      std::strncpy(board->what[at].data(), error.what(), board->what[at].size() - 1);
    }
  };
  const auto ends =
      run_rank_processes(round.hosts, body, 2 * kTimeout, [&](const std::vector<int>& pids) {
        kill_at(round, *board, pids[static_cast<size_t>(round.victim)]);
      });
  return outcome_of(round, *board, ends);
}

int report(const std::vector<Outcome>& outcomes) {
  int bad = 0;
  fmt::print("{:<12} {:>5} {:>10} {:>10} {:>5} {:>6}\n", "phase", "kills", "median ms", "worst ms",
             "late", "wrong");
  for (int phase = 0; phase < kNumPhases; ++phase) {
    std::vector<double> ms;
    int late = 0;
    int wrong = 0;
    for (const Outcome& one : outcomes) {
      if (one.phase != phase) continue;
      ms.push_back(one.last_ms);
      late += one.late ? 1 : 0;
      wrong += one.wrong ? 1 : 0;
    }
    if (ms.empty()) continue;
    bad += late + wrong;
    std::sort(ms.begin(), ms.end());
    fmt::print("{:<12} {:>5} {:>10.1f} {:>10.1f} {:>5} {:>6}\n",
               kPhases[static_cast<size_t>(phase)], ms.size(), ms[ms.size() / 2], ms.back(), late,
               wrong);
  }
  fmt::print("{} kills, load {:.1f} by core: {}\n", outcomes.size(), load_by_core(),
             bad == 0 ? "every survivor named the victim in time" : "FAILED");
  return bad == 0 ? 0 : 1;
}

struct Options {
  int kills = kNumPhases * kRanks * 2;
  unsigned seed = std::random_device{}();
  int phase = -1;  // any
};

int usage() {
  fmt::print(stderr, "usage: comm_chaos [--kills N] [--seed S] [--phase {}]\n",
             fmt::join(kPhases, "|"));
  return 2;
}

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--kills") {
      options.kills = std::atoi(argv[i + 1]);
    } else if (name == "--seed") {
      options.seed = static_cast<unsigned>(std::strtoul(argv[i + 1], nullptr, 10));
    } else if (name == "--phase") {
      const auto* at = std::find(kPhases.begin(), kPhases.end(), std::string_view(argv[i + 1]));
      if (at == kPhases.end()) return false;
      options.phase = static_cast<int>(at - kPhases.begin());
    } else {
      return false;
    }
  }
  return argc % 2 == 1 && options.kills > 0;
}

/// The round at this place of the sequence of all that differ in more than the instant.
Round round_at(unsigned place, const Options& options) {
  Round round;
  const unsigned phases = options.phase < 0 ? kNumPhases : 1;
  round.phase = options.phase < 0 ? static_cast<int>(place % phases) : options.phase;
  round.victim = static_cast<int>(place / phases % kRanks);
  const bool one_host = place / phases / kRanks % 2 == 0;
  round.hosts = one_host ? HostLayout{kRanks} : HostLayout{2, 2};
  return round;
}

int run_all(const Options& options) {
  fmt::print("seed {}\n", options.seed);
  std::mt19937 random(options.seed);
  const auto first = static_cast<unsigned>(random() % kKinds);
  std::vector<Outcome> outcomes;
  for (int kill = 0; kill < options.kills; ++kill) {
    Round round = round_at(first + static_cast<unsigned>(kill), options);
    round.after = std::chrono::microseconds(random() % 5000);
    outcomes.push_back(run(round));
    if (outcomes.back().complaint.empty()) continue;
    fmt::print("kill {}: rank {} of {} host(s), in {}\n{}", kill, round.victim, round.hosts.size(),
               kPhases[static_cast<size_t>(outcomes.back().phase)], outcomes.back().complaint);
  }
  return report(outcomes);
}

}  // namespace
}  // namespace lockstep::testing

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  lockstep::testing::Options options;
  if (!lockstep::testing::parse(argc, argv, options)) return lockstep::testing::usage();
  return lockstep::testing::run_all(options);
}
