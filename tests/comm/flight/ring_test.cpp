#include "lockstep/comm/flight/ring.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <span>
#include <thread>

#include "lockstep/base/file.h"
#include "lockstep/comm/flight/last_calls.h"
#include "lockstep/comm/flight/record.h"
#include "lockstep/error.h"
#include "lockstep/process_group.h"
#include "lockstep/types.h"
#include "tests/support/error_of.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/namespaces.h"
#include "tests/support/ranks.h"
#include "tests/support/recorded_calls.h"
#include "tests/support/temp_folder.h"

namespace lockstep::testing {
namespace {

FlightRing::Operation an_operation(uint64_t sequence, uint16_t group = 0) {
  return {"all_reduce", group, sequence, 6, 24, static_cast<uint8_t>(DType::kFloat32), -1};
}

TEST(FlightRing, ReadsWhatWasWritten) {
  FlightRing ring(3, 4, "");
  const auto group = ring.add_group("w/sub", 1, 2);
  ring.leave(ring.enter(an_operation(1, group)), false);
  ring.leave(ring.enter({"broadcast", group, 2, -1, 8, 200, 1, {"/src/a b.cpp", 88}}), true);
  ring.enter({"all_reduce", group, 3, 6, 24, 0, -1, {"/src/reducer.cpp", 7, 4}});
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
  EXPECT_EQ(record.entries[0].site, "");
  EXPECT_FALSE(record.entries[0].failed);
  EXPECT_GE(record.entries[0].left_ns, record.entries[0].entered_ns);
  EXPECT_TRUE(record.entries[1].failed);
  EXPECT_EQ(record.entries[1].dtype, "?");
  EXPECT_EQ(record.entries[1].site, "a b.cpp:88");
  EXPECT_EQ(record.entries[2].left_ns, 0);
  EXPECT_EQ(record.entries[2].site, "reducer.cpp:7 (bucket 4)");
}

TEST(FlightRing, KeepsTheNewest) {
  FlightRing ring(0, 1, "");
  ring.add_group("w", 0, 1);
  const uint64_t first = ring.enter(an_operation(1));
  for (uint64_t i = 2; i <= kFlightEvents + 10; ++i) ring.leave(ring.enter(an_operation(i)), false);
  ring.leave(first, true);  // overwritten meanwhile: must not mark another event
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
    const auto group = ring.add_group(std::string(200, 'n'), 0, 1);
    EXPECT_EQ(group, i < kFlightGroups ? i : kNoFlightGroup);
  }
  const FlightRecord record = read_flight(bytes_of(ring), "ring");
  EXPECT_EQ(record.groups.size(), kFlightGroups);
  EXPECT_EQ(record.groups.front().size(), sizeof FlightGroup::name - 1);
}

TEST(FlightRing, EntriesOfGroupsThatEndedServeOthers) {
  FlightRing ring(0, 1, "");
  std::vector<uint16_t> groups;
  for (uint32_t i = 0; i < 3 * kFlightGroups; ++i) {
    groups.push_back(ring.add_group(fmt::format("g{}", i), 0, 1));
    ring.enter({"barrier", groups.back(), 1, 0, 0, 0, -1});
    if (i > 1) ring.end_group(groups[groups.size() - 2]);  // all but the first and the newest
  }
  const FlightRecord record = read_flight(bytes_of(ring), "ring");
  const auto newest = fmt::format("g{}", 3 * kFlightGroups - 1);
  EXPECT_EQ(record.groups.size(), kFlightGroups);
  EXPECT_EQ(std::count(record.groups.begin(), record.groups.end(), "g0"), 1);
  EXPECT_EQ(record.entries.front().group, "g0");
  EXPECT_EQ(record.entries[1].group, "?");  // another group has its entry by now
  EXPECT_EQ(record.entries.back().group, newest);
  EXPECT_EQ(last_call(record, newest, record.entries.back().entered_ns).what, "barrier #1");
}

TEST(FlightRing, LongNamesOfGroupsStayApart) {
  const std::string sub_group(90, 's');
  FlightRing ring(0, 1, "");
  for (const auto* end : {"1", "2"}) {
    ring.enter({"barrier", ring.add_group(sub_group + end, 0, 1), 1, 0, 0, 0, -1});
  }
  ring.enter({"barrier", ring.add_group("g", 0, 1), 1, 0, 0, 0, -1});
  const FlightRecord record = read_flight(bytes_of(ring), "ring");
  EXPECT_EQ(record.memberships.size(), 3u);
  EXPECT_EQ(last_call(record, sub_group + "1", 0).reached, 1u);
  EXPECT_EQ(last_call(record, sub_group + "3", 0).reached, 0u);
}

TEST(FlightRing, AFileIsReadableAfterItsWriterEnded) {
  const TempFolder folder;
  const std::string path = (folder.path() / "rank_0.flight").string();
  {
    const std::string file = "main.cpp";  // destroyed with its writer
    FlightRing(0, 1, path).enter({"barrier", 0, 7, 0, 0, 0, -1, {file.c_str(), 88}});
  }
  const std::string bytes = read_file(path);
  const auto record = read_flight(std::as_bytes(std::span(bytes.data(), bytes.size())), path);
  ASSERT_EQ(record.entries.size(), 1u);
  EXPECT_EQ(record.entries[0].sequence, 7u);
  EXPECT_EQ(record.entries[0].site, "main.cpp:88");
  EXPECT_THROW(FlightRing(0, 1, "/no/such/folder/x.flight"), Error);
}

// As in a job that restarts in the folder of one that still runs.
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

/// A rank's recorder with LOCKSTEP_FLIGHT_DIR as `folder`, on a disk that is too small. Ends this
/// process: with 0 if others can read the recorder.
[[noreturn]] void record_on_a_small_disk(const std::string& folder) {
  enter_user_namespace(CLONE_NEWNS);
  if (::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=64k") != 0) ::_exit(2);
  ::setenv("LOCKSTEP_FLIGHT_DIR", folder.c_str(), 1);
  FlightRing& ring = FlightRing::of_rank(0, 1);
  ring.leave(ring.enter(an_operation(3)), false);
  ::_exit(ring.fd() >= 0 && read_flight(bytes_of(ring), "ring").entries.size() == 1 ? 0 : 1);
}

TEST(FlightRing, OnAFullDiskItSaysSoAndIsReadThroughItsProcessAsRoot) {
  LOCKSTEP_NEED_NAMESPACES();
  const TempFolder folder;
  const std::string path = folder.path().string();
  EXPECT_EXIT(record_on_a_small_disk(path), ::testing::ExitedWithCode(0),
              "for " + path + "/rank_0.flight: No space left on device; the rank goes on .*" +
                  "'lockstep inspect [0-9]+' .* no file of it stays in " + path);
}

TEST(FlightRecorder, EventsThatAreNotInTheirPlaceAreLeftOut) {
  FlightRing ring(0, 1, "");
  ring.add_group("w", 0, 1);
  ring.add_group("", 0, 1);  // like one whose name is about to be written
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

TEST(FlightRecorder, ACallSiteThatIsNoneIsUnknown) {
  FlightRing ring(0, 1, "");
  ring.add_group("w", 0, 1);
  ring.enter({"barrier", 0, 1, 0, 0, 0, -1, {"main.cpp", 88}});
  const auto site_in = [](const FlightMemory& memory) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(&memory);
    return read_flight({bytes, sizeof memory}, "ring").entries.at(0).site;
  };
  const auto changed = [&](const auto& change) {
    const auto copy = std::make_unique<FlightMemory>();
    std::memcpy(static_cast<void*>(copy.get()), &ring.memory(), sizeof(FlightMemory));
    change(*copy, copy->header.sites[copy->events[0].site - 1]);
    return site_in(*copy);
  };
  EXPECT_EQ(changed([](FlightMemory& /*memory*/, FlightSite& /*site*/) {}), "main.cpp:88");
  // A name that is being written; one beyond the table; and one without an end.
  EXPECT_EQ(changed([](FlightMemory& /*memory*/, FlightSite& site) { site.line = 0; }), "");
  for (const uint16_t beyond : {kFlightSites + 1, 65535U}) {
    EXPECT_EQ(changed([&](FlightMemory& memory, FlightSite& /*site*/) {
                memory.events[0].site = beyond;
              }),
              "");
  }
  EXPECT_EQ(changed([](FlightMemory& /*memory*/, FlightSite& site) {
              std::memset(site.file, '\n', sizeof site.file);
            }),
            std::string(sizeof FlightSite::file, '?') + ":88");
}

TEST(FlightRecorder, GarbageIsCorruptOrHarmless) {
  FlightRing ring(0, 2, "");
  ring.add_group("w", 0, 2);
  for (uint64_t i = 1; i <= 50; ++i) {
    const CallSite site{"main.cpp", static_cast<uint32_t>(i), static_cast<int32_t>(i % 3)};
    ring.leave(ring.enter({"all_reduce", 0, i, 6, 24, 0, -1, site}), i % 7 == 0);
  }
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

/// An operation inside a wrapper function.
void sum_of_all(ProcessGroup& group, float& value, CallSite site = CallSite::here()) {
  group.all_reduce(&value, 1, DType::kFloat32, ReduceOp::kSum, {}, site).wait();
}

// An operation recorded in the caller's thread, in the group's and in that of a peer.
TEST(FlightRecorder, KnowsWhereEachOperationWasCalled) {
  run_rank_threads(2, [](const World& world) {
    constexpr auto kType = DType::kFloat32;
    constexpr auto kSum = ReduceOp::kSum;
    const CollectiveOptions kAsync{.async = true};
    auto group = ProcessGroup::create(world);
    std::vector<float> in(16);
    std::vector<float> out(16);
    const std::vector<int64_t> counts = {2, 2};
    const Buffer buffers[] = {{in.data(), 4}, {out.data(), 4}};
    const auto told = [&](const std::string& call, int line, const char* rest = "") {
      const FlightEntry last = recorded_calls(world.rank).back();
      EXPECT_EQ(last.call, call);
      EXPECT_EQ(last.site, "ring_test.cpp:" + std::to_string(line) + rest);
    };
    group.all_reduce(in.data(), 4, kType, kSum).wait();
    told("all_reduce", __LINE__ - 1);
    group.all_reduce(in.data(), 4, kType, kSum, kAsync).wait();
    told("all_reduce", __LINE__ - 1);
    group.broadcast(in.data(), 4, kType, 1).wait();
    told("broadcast", __LINE__ - 1);
    group.all_gather(in.data(), out.data(), 2, kType).wait();
    told("all_gather", __LINE__ - 1);
    group.reduce_scatter(in.data(), out.data(), 2, kType, kSum).wait();
    told("reduce_scatter", __LINE__ - 1);
    group.reduce(in.data(), 4, kType, kSum, 0).wait();
    told("reduce", __LINE__ - 1);
    group.gather(in.data(), out.data(), 4, kType, 0).wait();
    told("gather", __LINE__ - 1);
    group.scatter(in.data(), out.data(), 4, kType, 0, kAsync).wait();
    told("scatter", __LINE__ - 1);
    group.all_to_all(in.data(), out.data(), 4, kType).wait();
    told("all_to_all", __LINE__ - 1);
    group.all_gatherv(in.data(), out.data(), counts, kType).wait();
    told("all_gatherv", __LINE__ - 1);
    group.all_to_allv(in.data(), counts, out.data(), counts, kType).wait();
    told("all_to_allv", __LINE__ - 1);
    group.all_reduce_coalesced(buffers, kType, kSum).wait();
    told("all_reduce", __LINE__ - 1);
    const bool sends = world.rank == 0;
    Work message = sends ? group.send(in.data(), 4, kType, 1) : group.recv(in.data(), 4, kType, 0);
    message.wait();
    told(sends ? "send" : "recv", __LINE__ - 2);
    group.barrier();
    told("barrier", __LINE__ - 1);
    group.allocate(64);
    told("allocate", __LINE__ - 1);
    group.split(0);
    told("all_gather", __LINE__ - 1);
    sum_of_all(group, in[0]);
    told("all_reduce", __LINE__ - 1);
    sum_of_all(group, in[0], CallSite::here().of_bucket(3));
    told("all_reduce", __LINE__ - 1, " (bucket 3)");
  });
}

}  // namespace
}  // namespace lockstep::testing
