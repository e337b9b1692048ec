// Large letters where the kernel does not let one rank read another's memory: the receiver refuses
// what is offered, and the bytes come through the ring.

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <numeric>
#include <optional>
#include <vector>

#include "lockstep/comm/process_group.h"
#include "tests/comm/support/conformance.h"

namespace lockstep::testing {
namespace {

/// In this thread, and those that it starts.
void forbid_reading_others() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{sizeof program / sizeof *program, program};
  require(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
  require(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0, "seccomp");
  char byte = 0;
  const iovec here{&byte, 1};
  require(::process_vm_readv(::getpid(), &here, 1, &here, 1, 0) == -1 && errno == EPERM,
          "process_vm_readv is still allowed");
}

std::vector<int32_t> values_of(int rank, int64_t count) {
  std::vector<int32_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), rank * 1'000'000'007);
  return values;
}

/// Both ways at once, and behind each large letter a small one. Count: of int32.
void exchange(ProcessGroup& group, int64_t count) {
  const int peer = 1 - group.rank();
  const auto own = values_of(group.rank(), count);
  std::vector<int32_t> large(own.size());
  int32_t small = -1;
  Work sent[] = {group.send(own.data(), count, DType::kInt32, peer, 1),
                 group.send(&own.back(), 1, DType::kInt32, peer, 2)};
  group.recv(large.data(), count, DType::kInt32, peer, 1).wait();
  group.recv(&small, 1, DType::kInt32, peer, 2).wait();
  for (Work& work : sent) work.wait();
  const auto expected = values_of(peer, count);
  require(large == expected, "the bytes of a large letter");
  require(small == expected.back(), "the letter behind it");
}

/// `refuses`: the rank that may not read; none: both. The first letter is refused, and with it the
/// sender learns that later ones go through the ring at once.
void exchange_where_refused(int64_t bytes, std::optional<int> refuses) {
  const auto ends = run_rank_processes({2}, [&](const World& world) {
    if (!refuses || world.rank == *refuses) forbid_reading_others();
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(60)});
    for (int turn = 0; turn < 3; ++turn) exchange(group, bytes / int64_t{sizeof(int32_t)} + turn);
  });
  EXPECT_EQ(ends, (std::vector<int>{0, 0})) << bytes << " bytes";
}

// Less than the ring holds, and read by one thread.
TEST(RefusedOffer, ALetterThatOneThreadWouldCopyComesThroughTheRing) {
  exchange_where_refused(700'000, std::nullopt);
}

// Several times what the ring holds, and read by two threads.
TEST(RefusedOffer, ALetterThatTwoThreadsWouldCopyComesThroughTheRing) {
  exchange_where_refused(5'000'000, std::nullopt);
}

// One direction by the ring, the other out of the sender's memory.
TEST(RefusedOffer, OneEndMayRefuseAndTheOtherNot) {
  exchange_where_refused(5'000'000, 0);
}

}  // namespace
}  // namespace lockstep::testing
