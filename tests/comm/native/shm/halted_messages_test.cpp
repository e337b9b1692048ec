// The fate of a large message when one end halts in the middle of the copy.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/comm/fault_point.h"
#include "lockstep/comm/native/shm/mailbox.h"
#include "lockstep/deadline.h"
#include "lockstep/process_group.h"
#include "tests/comm/support/allowance.h"
#include "tests/comm/support/conformance.h"
#include "tests/comm/support/forked.h"
#include "tests/comm/support/no_reading.h"
#include "tests/support/error_of.h"

namespace lockstep::testing {
namespace {

constexpr int64_t kMessageCount = 4 << 20;  // of int32
constexpr int kMessageChunks = kMessageCount * 4 / shm::Lane::kSlotBytes;

/// In memory that both ranks share.
struct HaltBoard {
  std::atomic<pid_t> victim;
  std::atomic<int64_t> halted_ns;  // on the clock of both ranks
  std::atomic<bool> may_go_on;     // the end that halts
  std::atomic<bool> has_ended;     // its call has
};

/// The action of this process after the `chunk`-th chunk that it copies.
struct Halt {
  int chunk;
  void (*act)(HaltBoard& board);
  HaltBoard* board;
  std::atomic<int> copied;
};
Halt halt_here;

void halt_after(int chunk, HaltBoard& board, void (*act)(HaltBoard& board)) {
  halt_here.chunk = chunk;
  halt_here.act = act;
  halt_here.board = &board;
  fault_hook = [](int /*world_rank*/, OpKind kind, FaultPoint point) {
    const bool copies = point == FaultPoint::kSending || point == FaultPoint::kReceiving;
    if (kind != OpKind::kNone || !copies || ++halt_here.copied != halt_here.chunk) return;
    halt_here.board->halted_ns = std::chrono::steady_clock::now().time_since_epoch().count();
    halt_here.act(*halt_here.board);
  };
}

void die(HaltBoard& /*board*/) {
  ::raise(SIGKILL);
}
void await_leave(HaltBoard& board) {
  while (!board.may_go_on) ::usleep(1000);
}
void freeze(HaltBoard& board) {
  ::kill(::getpid(), SIGSTOP);
  await_leave(board);  // this thread blocks signals, and would continue for a moment
}

std::vector<int32_t> message() {
  std::vector<int32_t> values(kMessageCount);
  std::iota(values.begin(), values.end(), 7);
  return values;
}

void send_message(ProcessGroup& group) {
  const auto values = message();
  group.send(values.data(), kMessageCount, DType::kInt32, 1).wait();
}
void recv_message(ProcessGroup& group, std::vector<int32_t>& values) {
  group.recv(values.data(), kMessageCount, DType::kInt32, 0).wait();
}

/// Rank `victim` of two halts when half of the message is copied. The other one must name it within
/// `within` seconds. The receiver does not read the sender's memory, so that both ends copy all of
/// it.
void halt_one(int victim, void (*act)(HaltBoard& board), ErrorCode code,
              std::chrono::milliseconds timeout, double within) {
  const Shared<HaltBoard> board;
  const auto ends = run_rank_processes(2, [&](const World& world) {
    forbid_reading_others();
    auto group = ProcessGroup::create(world, {.timeout = timeout});
    if (world.rank == victim) {
      board->victim = ::getpid();
      halt_after(kMessageChunks / 2, *board, act);
    }
    std::vector<int32_t> values(kMessageCount);
    group.barrier();
    const Error error =
        error_of([&] { world.rank == 0 ? send_message(group) : recv_message(group, values); });
    const std::chrono::duration<double> took = std::chrono::steady_clock::now().time_since_epoch() -
                                               std::chrono::nanoseconds(board->halted_ns);
    ::kill(board->victim, SIGKILL);
    require(error.code() == code, error.what());
    require(has_name(error, "rank " + std::to_string(victim)), error.what());
    require(took.count() < within, "told after " + std::to_string(took.count()) + " s");
  });
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(ends[static_cast<size_t>(rank)], rank == victim ? -SIGKILL : 0)
        << "rank " << victim << " of code " << static_cast<int>(code);
  }
}

TEST(HaltedMessage, AnEndThatDiesIsNamedWithinASecond) {
  for (const int victim : {0, 1}) {
    halt_one(victim, die, ErrorCode::kPeerLost, std::chrono::seconds(50), allowed(1));
  }
}

TEST(HaltedMessage, AnEndThatIsFrozenIsNamedWithinASecondOfTheDeadline) {
  for (const int victim : {0, 1}) {
    halt_one(victim, freeze, ErrorCode::kTimeout, std::chrono::seconds(3), 3 + allowed(1));
  }
}

TEST(HaltedMessage, AMessageThatIsBegunAtTheLastMomentHasATimeOfItsOwn) {
  const Shared<HaltBoard> board;
  const auto ends = run_rank_processes(2, [&](const World& world) {
    forbid_reading_others();
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(10)});
    std::vector<int32_t> values(kMessageCount);
    group.barrier();
    if (world.rank == 0) return send_message(group);
    // The sender's ten seconds pass while this rank copies.
    halt_after(kMessageChunks / 2, *board, [](HaltBoard& /*board*/) { ::usleep(6'000'000); });
    ::usleep(5'000'000);
    recv_message(group, values);
    require(values == message(), "the message arrived as another");
  });
  EXPECT_EQ(ends, (std::vector<int>{0, 0}));
}

/// The state that /proc shows, e.g. T: stopped. Z: dead, whether or not its parent has reaped it.
char state_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return 'Z';
  return line.at(line.rfind(") ") + 2);
}

void await_state(const std::atomic<pid_t>& pid, char state) {
  const auto limit = Deadline::after(std::chrono::seconds(30));
  while (!limit.passed()) {
    if (pid != 0 && state_of(pid) == state) return;
    ::usleep(1000);
  }
  throw std::runtime_error(std::string("the sender does not come to state ") + state);
}

TEST(HaltedMessage, IsReadOutOfASenderThatIsFrozen) {
  const Shared<HaltBoard> board;
  const auto ends = run_rank_processes(2, [&](const World& world) {
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(20)});
    if (world.rank == 0) {
      board->victim = ::getpid();
      ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);  // else Yama may forbid the other rank to read
      halt_after(1, *board, freeze);
    }
    group.barrier();
    if (world.rank == 0) {
      send_message(group);
    } else {
      std::vector<int32_t> values(kMessageCount);
      await_state(board->victim, 'T');
      recv_message(group, values);
      board->may_go_on = true;
      ::kill(board->victim, SIGCONT);
      require(values == message(), "the bytes of the message");
      require(shm::travelled.taken == 1, "chunks through the lane");
      require(shm::travelled.read == kMessageChunks - 1, "chunks that were read");
    }
    group.barrier();
  });
  EXPECT_EQ(ends, (std::vector<int>{0, 0}));
}

TEST(HaltedMessage, IsNotReadOutOfASenderThatIsDead) {
  const Shared<HaltBoard> board;
  const auto ends = run_rank_processes(2, [&](const World& world) {
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(50)});
    if (world.rank == 0) {
      board->victim = ::getpid();
      halt_after(1, *board, die);
    }
    group.barrier();
    if (world.rank == 0) send_message(group);
    std::vector<int32_t> values(kMessageCount);
    await_state(board->victim, 'Z');
    const Error error = error_of([&] { recv_message(group, values); });
    require(error.code() == ErrorCode::kPeerLost, error.what());
    require(has_name(error, "rank 0"), error.what());
    require(shm::travelled.taken == 1 && shm::travelled.read == 0, "chunks that travelled");
  });
  EXPECT_EQ(ends, (std::vector<int>{-SIGKILL, 0}));
}

TEST(HaltedMessage, WhatTheKernelDoesNotReadIsWaitedFor) {
  const Shared<HaltBoard> board;
  const auto ends = run_rank_processes(2, [&](const World& world) {
    forbid_reading_others();
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(50)});
    if (world.rank == 0) halt_after(2, *board, await_leave);
    group.barrier();
    if (world.rank == 0) return send_message(group);
    std::thread other([&] {
      while (shm::travelled.refused == 0) ::usleep(1000);
      board->may_go_on = true;
    });
    std::vector<int32_t> values(kMessageCount);
    recv_message(group, values);
    other.join();
    require(values == message(), "the bytes of the message");
    require(shm::travelled.refused == 1 && shm::travelled.read == 0, "attempts to read");
    require(shm::travelled.taken == kMessageChunks, "chunks through the lane");
  });
  EXPECT_EQ(ends, (std::vector<int>{0, 0}));
}

TEST(HaltedMessage, NobodyWritesToARecvThatIsOver) {
  const Shared<HaltBoard> board;
  const auto ends = run_rank_processes(2, [&](const World& world) {
    forbid_reading_others();
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(3)});
    if (world.rank == 0) halt_after(kMessageChunks / 2, *board, await_leave);
    group.barrier();
    if (world.rank == 0) {
      const Error error = error_of([&] { send_message(group); });
      require(error.code() == ErrorCode::kTimeout, error.what());
      board->has_ended = true;
      return;
    }
    std::vector<int32_t> values(kMessageCount);
    const Error error = error_of([&] { recv_message(group, values); });
    require(error.code() == ErrorCode::kTimeout, error.what());
    require(has_name(error, "rank 0"), error.what());
    std::fill(values.begin(), values.end(), -1);
    board->may_go_on = true;
    while (!board->has_ended) ::usleep(1000);
    require(values == std::vector<int32_t>(kMessageCount, -1), "something was written afterwards");
  });
  EXPECT_EQ(ends, (std::vector<int>{0, 0}));
}

}  // namespace
}  // namespace lockstep::testing
