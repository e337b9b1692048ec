// The ways of large messages: from memory that both ranks map, or through the lane. The lane must
// suffice if the kernel does not let one rank read the other's memory.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <vector>

#include "lockstep/comm/native/shm/mailbox.h"
#include "lockstep/process_group.h"
#include "tests/comm/support/conformance.h"
#include "tests/comm/support/no_reading.h"

namespace lockstep::testing {
namespace {

std::vector<int32_t> values_of(int rank, int64_t count) {
  std::vector<int32_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), rank * 1'000'000'007);
  return values;
}

/// In both directions at once, with a small message behind each large one. Count: of int32.
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
  require(large == expected, "the bytes of a large message");
  require(small == expected.back(), "the message behind it");
}

/// Chunks of a message that both ends copy.
int chunks_of(int64_t bytes) {
  return static_cast<int>(shm::LaneChunks{bytes}.count());
}

/// `refuses`: the rank that may not read; none: both. A rank tries at most once.
void exchange_where_refused(int64_t bytes, std::optional<int> refuses) {
  const auto ends = run_rank_processes(2, [&](const World& world) {
    if (!refuses || world.rank == *refuses) forbid_reading_others();
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(60)});
    for (int turn = 0; turn < 3; ++turn) exchange(group, bytes / int64_t{sizeof(int32_t)} + turn);
    const bool reads = refuses && world.rank != *refuses;
    const auto& chunks = shm::travelled;
    require(chunks.refused <= (reads ? 0 : 1), "more than one attempt to read in vain");
    require(reads || chunks.read == 0, "chunks that were read");
    require(chunks.taken + chunks.read == 3 * chunks_of(bytes), "chunks that travelled");
  });
  EXPECT_EQ(ends, (std::vector<int>{0, 0})) << bytes << " bytes";
}

TEST(UnreadableSender, AMessageOfFewChunksComesThroughTheLane) {
  exchange_where_refused(700'000, std::nullopt);
}

TEST(UnreadableSender, AMessageOfManyChunksComesThroughTheLane) {
  exchange_where_refused(5'000'000, std::nullopt);
}

TEST(UnreadableSender, OneEndMayReadAndTheOtherNot) {
  exchange_where_refused(5'000'000, 0);
}

/// Sends from rank 0 to rank 1, in memory of allocate(), from `offset` elements on.
void pass_shared(ProcessGroup& group, SharedBuffer& buffer, int64_t offset) {
  auto* const own = static_cast<int32_t*>(buffer.data());
  const int64_t count = buffer.bytes() / int64_t{sizeof(int32_t)} - offset;
  const auto expected = values_of(0, count);
  if (group.rank() == 0) {
    std::copy(expected.begin(), expected.end(), own + offset);
    group.send(own + offset, count, DType::kInt32, 1).wait();
    return;
  }
  std::vector<int32_t> received(expected.size());
  group.recv(received.data(), count, DType::kInt32, 0).wait();
  require(received == expected, "the bytes of a message out of shared memory");
}

constexpr int64_t kSharedBytes = 3 << 20;

TEST(SharedMessage, IsCopiedOutOfTheMappingAlsoWhereNobodyMayRead) {
  for (const HostLayout& hosts : {HostLayout{2}, HostLayout{2, 1}}) {
    const auto ends = run_rank_processes(hosts, [](const World& world) {
      forbid_reading_others();
      auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(60)});
      const auto other = group.allocate(kSharedBytes);
      const auto buffer = group.allocate(kSharedBytes);
      if (world.rank > 1) return group.barrier();
      exchange(group, kSharedBytes / 4);  // not in the mapping; later messages are not affected
      for (const int64_t offset : {0, 1, 1000}) pass_shared(group, *buffer, offset);
      require(shm::travelled.mapped == (world.rank == 1 ? 3 : 0), "messages that were mapped");
      require(shm::travelled.taken == chunks_of(kSharedBytes), "chunks through the lane");
      group.barrier();
    });
    for (const int end : ends) EXPECT_EQ(end, 0) << hosts.size() << " host(s)";
  }
}

TEST(SharedMessage, ComesOtherwiseWhereTheReceiverHasGivenTheMemoryBack) {
  const auto ends = run_rank_processes(2, [](const World& world) {
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(60)});
    auto buffer = group.allocate(kSharedBytes);
    pass_shared(group, *buffer, 0);
    if (world.rank == 1) {
      std::vector<int32_t> received(kSharedBytes / 4);
      buffer.reset();
      group.barrier();
      group.recv(received.data(), kSharedBytes / 4, DType::kInt32, 0).wait();
      require(received == values_of(0, kSharedBytes / 4), "the bytes of a message");
      const auto& chunks = shm::travelled;
      require(chunks.mapped == 1, "messages that were mapped");
      require(chunks.taken + chunks.read == chunks_of(kSharedBytes), "chunks of the other");
    } else {
      group.barrier();
      group.send(buffer->data(), kSharedBytes / 4, DType::kInt32, 1).wait();
    }
  });
  EXPECT_EQ(ends, (std::vector<int>{0, 0}));
}

}  // namespace
}  // namespace lockstep::testing
