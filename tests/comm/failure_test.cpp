// A rank of three is killed or frozen in each point of each collective. The others must report it
// by name, in time, and in all later calls.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "lockstep/comm/fault_point.h"
#include "lockstep/error.h"
#include "lockstep/process_group.h"
#include "tests/comm/support/conformance.h"
#include "tests/comm/support/forked.h"

namespace lockstep::testing {
namespace {

constexpr int kRanks = 3;
constexpr int kRoot = 1;             // for calls that have one
constexpr int64_t kCount = 300'000;  // several chunks when staged

enum class Call {
  kStaged,
  kInPlace,
  kInline,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kBarrier,
  kReduce,
  kGather,
  kScatter,
  kAllToAll,
  kExchange,
  kCoalesced,
  kAllocate
};
constexpr int kCalls = static_cast<int>(Call::kAllocate) + 1;

struct Case {
  Call call;
  FaultPoint point;
  int signal;
  int victim;
};

/// Shared by all processes of a test.
struct Board {
  std::atomic<pid_t> victim;
  std::atomic<int> survivors_done;
};

// For this process; set before the hook.
int strike_victim;
OpKind strike_kind;
FaultPoint strike_point;
int strike_signal;

void strike_at(int world_rank, OpKind kind, FaultPoint point) {
  if (world_rank == strike_victim && kind == strike_kind && point == strike_point) {
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
    case Call::kReduce:
      return OpKind::kReduce;
    case Call::kGather:
      return OpKind::kGather;
    case Call::kScatter:
      return OpKind::kScatter;
    case Call::kAllToAll:
      return OpKind::kAllToAll;
    case Call::kExchange:
      return OpKind::kAllToAllv;
    case Call::kAllocate:
      return OpKind::kAllocate;
    default:
      return OpKind::kAllReduce;
  }
}

class Caller {
 public:
  explicit Caller(ProcessGroup& group)
      : group_(group),
        shared_(group.allocate(kCount * 4)),
        data_(kCount * kRanks),
        out_(kCount * kRanks) {}

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
        return group_.broadcast(data_.data(), kCount, kType, kRoot).wait();
      case Call::kAllGather:
        return group_.all_gather(data_.data(), out_.data(), kCount, kType).wait();
      case Call::kReduceScatter:
        return group_.reduce_scatter(data_.data(), out_.data(), kCount, kType, kSum).wait();
      case Call::kBarrier:
        return group_.barrier();
      case Call::kReduce:
        return group_.reduce(data_.data(), kCount, kType, kSum, kRoot).wait();
      case Call::kCoalesced:
        return all_reduce_coalesced();
      case Call::kAllocate:
        static_cast<void>(group_.allocate(kCount));
        return;
      default:
        return move(call);
    }
  }

 private:
  void move(Call call) {
    constexpr DType kType = DType::kFloat32;
    const std::vector<int64_t> counts(kRanks, kCount);
    if (call == Call::kGather) {
      group_.gather(data_.data(), out_.data(), kCount, kType, kRoot).wait();
    } else if (call == Call::kScatter) {
      group_.scatter(data_.data(), out_.data(), kCount, kType, kRoot).wait();
    } else if (call == Call::kAllToAll) {
      group_.all_to_all(data_.data(), out_.data(), kCount, kType).wait();
    } else {
      group_.all_to_allv(data_.data(), counts, out_.data(), counts, kType).wait();
    }
  }

  /// Small buffers that are packed, and a large one.
  void all_reduce_coalesced() {
    const std::vector<Buffer> buffers = {
        {data_.data(), 5}, {out_.data(), 100}, {data_.data() + kCount, kCount}};
    group_.all_reduce_coalesced(buffers, DType::kFloat32, ReduceOp::kSum).wait();
  }

  ProcessGroup& group_;
  std::shared_ptr<SharedBuffer> shared_;
  std::vector<float> data_;
  std::vector<float> out_;
};

/// Death is noticed at once, a frozen rank only by timeout: long enough for a call of three dozen
/// processes on two busy cores.
std::chrono::milliseconds timeout_for(int signal) {
  return std::chrono::milliseconds(signal == SIGKILL ? 20'000 : 5000);
}

/// Calls until it fails (the victim may be struck after its part of the first is done).
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
  require(has_name(error, fmt::format("rank {}", one.victim)), error.what());
  // Generous, for a busy machine, but much shorter than a killed rank's timeout: on an idle one it
  // takes 5 ms.
  require(took.count() < 10, fmt::format("took {} s", took.count()));
  try {
    group.barrier();
  } catch (const Error& again) {
    require(again.what() == std::string(error.what()), "another error afterwards");
    if (board.survivors_done.fetch_add(1) == kRanks - 2) ::kill(board.victim.load(), SIGKILL);
    return;
  }
  throw std::runtime_error("the group still works");
}

/// Called when all ranks are about to run one.call.
void arm(const Case& one) {
  strike_victim = one.victim;
  strike_kind = kind_of(one.call);
  strike_point = one.point;
  strike_signal = one.signal;
  fault_hook = strike_at;
}

void run_case(const Case& one) {
  const Shared<Board> shared;
  Board& board = *shared;
  const auto ends = run_rank_processes(
      HostLayout{kRanks},
      [&](const World& world) {
        const auto timeout = timeout_for(one.signal);
        if (world.rank == one.victim) board.victim = ::getpid();
        auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(20)});
        auto timed = ProcessGroup::create(world, {.timeout = timeout});
        Caller caller(timed);
        caller(one.call);
        group.barrier();
        arm(one);
        if (world.rank == one.victim) {
          for (int i = 0; i < 3; ++i) caller(one.call);
          throw std::runtime_error("the victim was not struck");
        }
        survive(timed, caller, one, board);
      },
      std::chrono::seconds(30));
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(ends[static_cast<size_t>(rank)], rank == one.victim ? -SIGKILL : 0)
        << "rank " << rank << ": call " << static_cast<int>(one.call) << " point "
        << static_cast<int>(one.point) << " signal " << one.signal << " victim " << one.victim;
  }
}

bool meets(Call call) {
  return call != Call::kInline && call != Call::kBarrier && call != Call::kAllocate;
}

/// Each point of each call: with each rank as the victim or, to save time, with a different one
/// each.
std::vector<Case> all_cases(int signal) {
  const bool each_rank = signal == SIGKILL && !kSanitized;
  std::vector<Case> cases;
  int next = 0;
  for (int i = 0; i < kCalls; ++i) {
    const auto call = static_cast<Call>(i);
    for (const FaultPoint point : {FaultPoint::kArriving, FaultPoint::kEntered,
                                   FaultPoint::kBarrier, FaultPoint::kFinished}) {
      if (point == FaultPoint::kBarrier && !meets(call)) continue;
      if (kSanitized && call != Call::kInPlace) continue;
      for (int rank = 0; rank < (each_rank ? kRanks : 1); ++rank)
        cases.push_back({call, point, signal, next++ % kRanks});
    }
  }
  return cases;
}

void run_all(int signal) {
  run_forked(all_cases(signal), signal == SIGKILL ? 6 : 9, run_case);
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

/// Strikes rank 1 while both ranks repeatedly send each other more than a channel holds.
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
    if (world.rank == 1) board->victim = ::getpid();
    transfer();
    if (world.rank == 1) {
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

// CPU time, so a busy machine does not matter.
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
