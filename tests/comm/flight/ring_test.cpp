#include "lockstep/comm/flight/ring.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <random>
#include <span>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/comm/flight/record.h"
#include "lockstep/comm/process_group.h"
#include "lockstep/comm/types.h"
#include "tests/support/error_of.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/ranks.h"
#include "tests/support/temp_folder.h"

namespace lockstep::testing {
namespace {

std::span<const std::byte> bytes_of(const FlightRing& ring) {
  return {reinterpret_cast<const std::byte*>(&ring.memory()), sizeof(FlightMemory)};
}

FlightRing::Operation an_operation(uint64_t sequence, uint16_t group = 0) {
  return {"all_reduce", group, sequence, 6, 24, static_cast<uint8_t>(DType::kFloat32), -1};
}

TEST(FlightRing, ReadsWhatWasWritten) {
  FlightRing ring(3, 4, "");
  const auto group = ring.add_group("w/sub", 1, 2);
  ring.leave(ring.enter(an_operation(1, group)), false);
  ring.leave(ring.enter({"broadcast", group, 2, -1, 8, 200, 1}), true);
  ring.enter(an_operation(3, group));
  const FlightRecord record = read_flight(bytes_of(ring), "ring");
  EXPECT_EQ(record.rank, 3);
  EXPECT_EQ(record.size, 4);
  EXPECT_EQ(record.pid, ::getpid());
  EXPECT_EQ(record.groups, std::vector<std::string>{"w/sub"});
  ASSERT_EQ(record.entries.size(), 3u);
  EXPECT_EQ(record.entries[0].call, "all_reduce");
  EXPECT_EQ(record.entries[0].group, "w/sub");
  EXPECT_EQ(record.entries[0].dtype, "float32");
  EXPECT_EQ(record.entries[0].bytes, 24);
  EXPECT_FALSE(record.entries[0].failed);
  EXPECT_GE(record.entries[0].left_ns, record.entries[0].entered_ns);
  EXPECT_TRUE(record.entries[1].failed);
  EXPECT_EQ(record.entries[1].dtype, "?");
  EXPECT_EQ(record.entries[2].left_ns, 0);
}

TEST(FlightRing, KeepsTheNewest) {
  FlightRing ring(0, 1, "");
  ring.add_group("w", 0, 1);
  const uint64_t first = ring.enter(an_operation(1));
  for (uint64_t i = 2; i <= kFlightEvents + 10; ++i) ring.leave(ring.enter(an_operation(i)), false);
  ring.leave(first, true);  // overwritten meanwhile: must not mark another's event
  const FlightRecord record = read_flight(bytes_of(ring), "ring");
  ASSERT_EQ(record.entries.size(), kFlightEvents);
  EXPECT_EQ(record.entries.front().sequence, 11u);
  EXPECT_EQ(record.entries.back().sequence, kFlightEvents + 10);
  for (const auto& entry : record.entries) EXPECT_FALSE(entry.failed);
}

TEST(FlightRing, ManyThreadsWriteAtOnce) {
  FlightRing ring(0, 1, "");
  std::vector<std::thread> threads;
  for (uint16_t t = 0; t < 4; ++t) {
    threads.emplace_back([&ring] {
      const auto group = ring.add_group("g", 0, 1);
      for (uint64_t i = 1; i <= 100; ++i) ring.leave(ring.enter(an_operation(i, group)), false);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(read_flight(bytes_of(ring), "ring").entries.size(), 400u);
}

TEST(FlightRing, HasRoomForNamesAndGroupsThatAreTooMany) {
  FlightRing ring(0, 1, "");
  for (uint32_t i = 0; i < kFlightGroups + 5; ++i) {
    EXPECT_LT(ring.add_group(std::string(200, 'n'), 0, 1), kFlightGroups);
  }
  const FlightRecord record = read_flight(bytes_of(ring), "ring");
  EXPECT_EQ(record.groups.size(), kFlightGroups);
  EXPECT_EQ(record.groups.front().size(), sizeof FlightGroup::name - 1);
}

TEST(FlightRing, AFileIsReadableAfterItsWriterEnded) {
  const TempFolder folder;
  const std::string path = (folder.path() / "rank_0.flight").string();
  { FlightRing(0, 1, path).enter(an_operation(7)); }
  const std::string bytes = read_file(path);
  const auto record = read_flight(std::as_bytes(std::span(bytes.data(), bytes.size())), path);
  ASSERT_EQ(record.entries.size(), 1u);
  EXPECT_EQ(record.entries[0].sequence, 7u);
  EXPECT_THROW(FlightRing(0, 1, "/no/such/folder/x.flight"), Error);
}

// As when a job starts again in the folder of one that still runs.
TEST(FlightRing, AnotherOneOfTheSameNameLeavesTheFirstWhole) {
  const TempFolder folder;
  const std::string path = (folder.path() / "rank_0.flight").string();
  FlightRing first(0, 1, path);
  first.enter(an_operation(1));
  FlightRing second(0, 1, path);
  first.enter(an_operation(2));
  second.enter(an_operation(7));
  EXPECT_EQ(read_flight(bytes_of(first), "first").entries.back().sequence, 2u);
  const std::string bytes = read_file(path);
  const auto record = read_flight(std::as_bytes(std::span(bytes.data(), bytes.size())), path);
  ASSERT_EQ(record.entries.size(), 1u);
  EXPECT_EQ(record.entries[0].sequence, 7u);
}

TEST(FlightRing, WhereThereIsNoRoomItIsNotMadeAndLeavesNothing) {
  const TempFolder folder;
  const FileSizeLimit limit(sizeof(FlightMemory) - 1);
  const auto path = folder.path() / "rank_0.flight";
  EXPECT_EQ(error_of([&] { FlightRing(0, 1, path.string()); }).code(), ErrorCode::kIo);
  EXPECT_FALSE(std::filesystem::exists(path));
  FlightRing own(0, 1);
  own.leave(own.enter(an_operation(3)), false);
  EXPECT_EQ(read_flight(bytes_of(own), "own").entries.size(), 1u);
}

TEST(FlightRecorder, EventsThatAreNotInTheirPlaceAreLeftOut) {
  FlightRing ring(0, 1, "");
  ring.add_group("w", 0, 1);
  ring.add_group("", 0, 1);  // as one looks whose name is about to be written
  for (uint64_t i = 1; i <= 3; ++i) ring.enter(an_operation(i));
  const auto whole = bytes_of(ring);
  std::vector<std::byte> bytes(whole.begin(), whole.end());
  const size_t second = sizeof(FlightHeader) + sizeof(FlightEvent);
  const uint64_t other = 3;
  std::memcpy(&bytes[second], &other, sizeof other);
  const auto record = read_flight(bytes, "ring");
  ASSERT_EQ(record.entries.size(), 2u);
  EXPECT_EQ(record.entries[1].sequence, 3u);
  EXPECT_EQ(record.groups, std::vector<std::string>{"w"});
}

TEST(FlightRecorder, GarbageIsCorruptOrHarmless) {
  FlightRing ring(0, 2, "");
  ring.add_group("w", 0, 2);
  for (uint64_t i = 1; i <= 50; ++i) ring.leave(ring.enter(an_operation(i)), i % 7 == 0);
  const auto whole = bytes_of(ring);
  EXPECT_THROW(read_flight(whole.subspan(1), "cut"), Error);
  EXPECT_THROW(read_flight({}, "empty"), Error);
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::byte> bytes(whole.begin(), whole.end());
    for (int i = 0; i < 300; ++i) {
      const size_t place = i % 2 == 0 ? random() % sizeof(FlightHeader) : random() % bytes.size();
      bytes[place] = static_cast<std::byte>(random());
    }
    try {
      EXPECT_FALSE(flight_table({read_flight(bytes, "garbage")}, 1).empty());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    }
  }
}

TEST(FlightRecorder, KnowsTheCollectivesOfAGroup) {
  run_rank_threads(2, [](const World& world) {
    auto group = ProcessGroup::create(world);
    std::vector<float> data(16, 1);
    group.all_reduce(data.data(), 16, DType::kFloat32, ReduceOp::kSum).wait();
    EXPECT_THROW(group.all_reduce(data.data(), -1, DType::kFloat32, ReduceOp::kSum), Error);
    group.barrier();
    if (world.rank == 0) group.send(data.data(), 4, DType::kFloat32, 1).wait();
    if (world.rank == 1) group.recv(data.data(), 4, DType::kFloat32, 0).wait();
    const auto record = read_flight(bytes_of(FlightRing::of_rank(world.rank, 2)), "ring");
    ASSERT_GE(record.entries.size(), 3u);
    const auto* last = &record.entries.back();
    EXPECT_EQ(last->call, world.rank == 0 ? "send" : "recv");
    EXPECT_EQ(last->sequence, 0u);
    EXPECT_EQ(last->peer, 1 - world.rank);
    EXPECT_EQ(last[-1].call, "barrier");
    EXPECT_EQ(last[-1].sequence, 2u);
    EXPECT_EQ(last[-2].call, "all_reduce");
    EXPECT_EQ(last[-2].sequence, 1u);
    EXPECT_EQ(last[-2].bytes, 64);
    EXPECT_NE(last[-2].left_ns, 0);
  });
}

}  // namespace
}  // namespace lockstep::testing
