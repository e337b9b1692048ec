// One rank of three is killed or frozen in each phase of each collective: the others must say so,
// name it, in time, and go on saying so.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/comm/native/phase.h"
#include "lockstep/comm/process_group.h"
#include "tests/comm/support/conformance.h"
#include "tests/comm/support/forked.h"

namespace lockstep::testing {
namespace {

constexpr int kVictim = 1;
constexpr int64_t kCount = 300'000;  // several chunks when staged

enum class Call { kStaged, kInPlace, kInline, kBroadcast, kAllGather, kReduceScatter, kBarrier };

struct Case {
  Call call;
  Phase phase;
  int signal;
};

/// Seen by all processes of a test.
struct Board {
  std::atomic<pid_t> victim;
  std::atomic<int> survivors_done;
};

// Of this process; set before the hook is.
OpKind strike_kind;
Phase strike_phase;
int strike_signal;

void strike(int world_rank, OpKind kind, Phase phase) {
  if (world_rank == kVictim && kind == strike_kind && phase == strike_phase) {
    ::raise(strike_signal);
  }
}

OpKind kind_of(Call call) {
  switch (call) {
    case Call::kBroadcast:
      return OpKind::kBroadcast;
    case Call::kAllGather:
      return OpKind::kAllGather;
    case Call::kReduceScatter:
      return OpKind::kReduceScatter;
    case Call::kBarrier:
      return OpKind::kBarrier;
    default:
      return OpKind::kAllReduce;
  }
}

class Caller {
 public:
  explicit Caller(ProcessGroup& group)
      : group_(group), shared_(group.allocate(kCount * 4)), data_(kCount * 3), out_(kCount * 3) {}

  void operator()(Call call) {
    constexpr DType kType = DType::kFloat32;
    constexpr ReduceOp kSum = ReduceOp::kSum;
    switch (call) {
      case Call::kStaged:
        return group_.all_reduce(data_.data(), kCount, kType, kSum).wait();
      case Call::kInPlace:
        return group_.all_reduce(shared_->data(), kCount, kType, kSum).wait();
      case Call::kInline:
        return group_.all_reduce(data_.data(), 5, kType, kSum).wait();
      case Call::kBroadcast:
        return group_.broadcast(data_.data(), kCount, kType, kVictim).wait();
      case Call::kAllGather:
        return group_.all_gather(data_.data(), out_.data(), kCount, kType).wait();
      case Call::kReduceScatter:
        return group_.reduce_scatter(data_.data(), out_.data(), kCount, kType, kSum).wait();
      case Call::kBarrier:
        return group_.barrier();
    }
  }

 private:
  ProcessGroup& group_;
  std::shared_ptr<SharedBuffer> shared_;
  std::vector<float> data_;
  std::vector<float> out_;
};

/// Death is told at once, a frozen rank by the clock only: long enough for a call of a dozen
/// processes on two cores that other work wants as well.
std::chrono::milliseconds timeout_for(int signal) {
  return std::chrono::milliseconds(signal == SIGKILL ? 20'000 : 2500);
}

/// Calls until it fails (the victim may fall after its part of the first is done).
Error first_error(Caller& caller, Call call) {
  for (int i = 0; i < 3; ++i) {
    try {
      caller(call);
    } catch (const Error& error) {
      return error;
    }
  }
  throw std::runtime_error("nobody noticed");
}

void survive(ProcessGroup& group, Caller& caller, const Case& one, Board& board) {
  const auto start = std::chrono::steady_clock::now();
  const Error error = first_error(caller, one.call);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  const ErrorCode want = one.signal == SIGKILL ? ErrorCode::kPeerLost : ErrorCode::kTimeout;
  require(error.code() == want, fmt::format("wrong error: {}", error.what()));
  require(has_name(error, "rank 1"), error.what());
  // Generous, for a machine that others keep busy, but long before a killed rank's timeout: on an
  // idle one it takes 5 ms.
  require(took.count() < 10, fmt::format("took {} s", took.count()));
  try {
    group.barrier();
  } catch (const Error& again) {
    require(again.what() == std::string(error.what()), "another error afterwards");
    if (board.survivors_done.fetch_add(1) == 1) ::kill(board.victim.load(), SIGKILL);
    return;
  }
  throw std::runtime_error("the group still works");
}

void run_case(const Case& one) {
  const Shared<Board> shared;
  Board& board = *shared;
  const auto ends = run_rank_processes(
      HostLayout{3},
      [&](const World& world) {
        const auto timeout = timeout_for(one.signal);
        if (world.rank == kVictim) board.victim = ::getpid();
        auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(20)});
        auto timed = ProcessGroup::create(world, {.timeout = timeout});
        Caller caller(timed);
        caller(one.call);
        strike_kind = kind_of(one.call);
        strike_phase = one.phase;
        strike_signal = one.signal;
        group.barrier();
        phase_hook = strike;
        if (world.rank == kVictim) {
          for (int i = 0; i < 3; ++i) caller(one.call);
          throw std::runtime_error("the victim was not struck");
        }
        survive(timed, caller, one, board);
      },
      std::chrono::seconds(30));
  EXPECT_EQ(ends, (std::vector<int>{0, -SIGKILL, 0}))
      << "call " << static_cast<int>(one.call) << " phase " << static_cast<int>(one.phase)
      << " signal " << one.signal;
}

std::vector<Case> all_cases(int signal) {
  std::vector<Case> cases;
  for (const Call call : {Call::kStaged, Call::kInPlace, Call::kInline, Call::kBroadcast,
                          Call::kAllGather, Call::kReduceScatter, Call::kBarrier}) {
    for (const Phase phase :
         {Phase::kArriving, Phase::kEntered, Phase::kMeeting, Phase::kFinished}) {
      const bool meets = call != Call::kInline && call != Call::kBarrier;
      if (phase == Phase::kMeeting && !meets) continue;
      if (kSanitized && call != Call::kInPlace) continue;
      cases.push_back({call, phase, signal});
    }
  }
  return cases;
}

void run_all(int signal) {
  run_forked(all_cases(signal), 6, run_case);
}

TEST(Failure, SurvivorsNameARankThatWasKilled) {
  run_all(SIGKILL);
}

TEST(Failure, SurvivorsNameARankThatWasFrozen) {
  run_all(SIGSTOP);
}

TEST(Failure, PointToPointNoticesDeath) {
  for (const bool sending : {false, true}) {
    const auto ends = run_rank_processes(2, [&](const World& world) {
      auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(20)});
      group.barrier();
      if (world.rank == 1) ::raise(SIGKILL);
      std::vector<float> data(1 << 20);
      const auto count = static_cast<int64_t>(data.size());
      try {
        auto work = sending ? group.send(data.data(), count, DType::kFloat32, 1)
                            : group.recv(data.data(), count, DType::kFloat32, 1);
        work.wait();
      } catch (const Error& error) {
        require(error.code() == ErrorCode::kPeerLost, error.what());
        require(has_name(error, "rank 1"), error.what());
        return;
      }
      throw std::runtime_error("nobody noticed");
    });
    EXPECT_EQ(ends, (std::vector<int>{0, -SIGKILL}));
  }
}

/// Rank 1 is struck while both ranks send each other more than a channel holds, over and over.
void strike_transfer(int signal) {
  const Shared<Board> board;
  const ErrorCode want = signal == SIGKILL ? ErrorCode::kPeerLost : ErrorCode::kTimeout;
  const auto ends = run_rank_processes(2, [&](const World& world) {
    std::vector<float> out(1 << 20);
    std::vector<float> in(1 << 20);
    const auto timeout = timeout_for(signal);
    auto group = ProcessGroup::create(world, {.timeout = timeout});
    const auto transfer = [&] {
      auto sent = group.send(out.data(), 1 << 20, DType::kFloat32, 1 - world.rank);
      auto received = group.recv(in.data(), 1 << 20, DType::kFloat32, 1 - world.rank);
      received.wait();
      sent.wait();
    };
    if (world.rank == kVictim) board->victim = ::getpid();
    transfer();
    if (world.rank == kVictim) {
      std::thread([signal] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        ::kill(::getpid(), signal);
      }).detach();
    }
    try {
      for (int i = 0; i < 100'000; ++i) transfer();
    } catch (const Error& error) {
      require(error.code() == want, error.what());
      require(has_name(error, "rank 1"), error.what());
      ::kill(board->victim, SIGKILL);
      return;
    }
    throw std::runtime_error("nobody noticed");
  });
  EXPECT_EQ(ends, (std::vector<int>{0, -SIGKILL})) << "signal " << signal;
}

TEST(Failure, PointToPointNamesARankThatIsStruckDuringATransfer) {
  strike_transfer(SIGKILL);
  strike_transfer(SIGSTOP);
}

// Processor time, so a busy machine does not matter.
TEST(Failure, AWaitingRankCostsUnderATwentiethOfACore) {
  const auto ends = run_rank_processes(2, [](const World& world) {
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
