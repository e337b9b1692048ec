// The work of ProcessGroup itself: arguments, back ends, meeting, failed groups, leaving.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <latch>
#include <map>
#include <memory>
#include <thread>

#include "lockstep/base/literals.h"
#include "lockstep/base/mutex.h"
#include "lockstep/comm/kernels/element_types.h"
#include "lockstep/error.h"
#include "lockstep/process_group.h"
#include "lockstep/store/memory/memory_store.h"
#include "lockstep/store/request_store.h"
#include "lockstep/store/store_state.h"
#include "lockstep/version.h"
#include "lockstep/world/host_id.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/ranks.h"
#include "tests/support/recorded_calls.h"

namespace lockstep::testing {
namespace {

/// Runs `body`; returns the Error it throws, kInternal if it throws none.
template <class Body>
Error error_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::kInternal, "nothing was thrown");
}

bool contains(const Error& error, std::string_view text) {
  return std::string_view(error.what()).find(text) != std::string_view::npos;
}

World alone() {
  World world;
  world.host_id = this_host_id();
  return world;
}

TEST(ProcessGroup, OneRankNeedsNoStore) {
  auto group = ProcessGroup::create(alone());
  EXPECT_EQ(group.rank(), 0);
  EXPECT_EQ(group.size(), 1);
  EXPECT_EQ(group.backend(), "native");
  float value = 3;
  group.all_reduce(&value, 1, DType::kFloat32, ReduceOp::kAvg).wait();
  EXPECT_EQ(value, 3);
}

TEST(ProcessGroup, BadArgumentsAreRefusedAndHarmless) {
  auto group = ProcessGroup::create(alone());
  float x = 1;
  const auto refused = [&](const auto& call, std::string_view text) {
    const Error error = error_of(call);
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
    EXPECT_TRUE(contains(error, text)) << error.what();
  };
  refused([&] { group.all_reduce(&x, -1, DType::kFloat32, ReduceOp::kSum); }, "count is -1");
  refused([&] { group.all_reduce(&x, INT64_MAX / 2, DType::kFloat32, ReduceOp::kSum); }, "count");
  refused([&] { group.all_reduce(nullptr, 1, DType::kFloat32, ReduceOp::kSum); }, "null pointer");
  refused([&] { group.all_reduce(&x, 1, static_cast<DType>(kNumDTypes), ReduceOp::kSum); },
          "dtype 12");
  refused([&] { group.all_reduce(&x, 1, DType::kFloat32, static_cast<ReduceOp>(9)); },
          "reduction 9");
  refused([&] { group.all_reduce(&x, 1, DType::kFloat32, ReduceOp::kBand); },
          "all_reduce: float32 has no band; it has sum, avg, min, max, product, premul_sum");
  refused([&] { group.all_reduce(&x, 1, DType::kBool, ReduceOp::kAvg); }, "bool has no avg");
  refused([&] { group.reduce_scatter(&x, &x, 0, DType::kComplex64, ReduceOp::kMax); },
          "complex64 has no max; it has sum, avg, premul_sum");
  refused([&] { group.all_reduce(&x, 1, DType::kFloat32, ReduceOp::kSum, {.factor = 2}); },
          "factor 2 is for premul_sum");
  refused([&] { group.broadcast(&x, 1, DType::kFloat32, 1); }, "root is 1, must be in [0, 1)");
  refused([&] { group.send(&x, 1, DType::kFloat32, 0); }, "this rank itself");
  refused([&] { group.recv(&x, 1, DType::kFloat32, -1); }, "source is -1");
  refused([&] { group.subgroup({}); }, "no ranks");
  refused([&] { group.subgroup({0, 0}); }, "twice");
  refused([&] { group.allocate(-1); }, "-1 bytes");
  group.all_reduce(&x, 1, DType::kFloat32, ReduceOp::kSum).wait();
  EXPECT_EQ(x, 1);
}

TEST(ProcessGroup, UnknownBackEndNamesTheNearest) {
  const Error error = error_of([] { ProcessGroup::create(alone(), {.backend = "natve"}); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(contains(error, "did you mean 'native'")) << error.what();
}

TEST(ProcessGroup, BackEndsOfLibtorchAreNamedWhereTheirOwnNameIsGiven) {
  const Error error = error_of([] { ProcessGroup::create(alone(), {.backend = "gloo"}); });
  EXPECT_TRUE(contains(error, "did you mean 'c10d:gloo'")) << error.what();
}

TEST(ProcessGroup, AWorldThatNobodyJoinedIsRefusedInAJob) {
  const auto error_with = [](const std::map<const char*, const char*>& variables) {
    for (const auto& [name, value] : variables) ::setenv(name, value, 1);
    const Error error = error_of([] { ProcessGroup::create(alone()); });
    for (const auto& [name, value] : variables) ::unsetenv(name);
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_TRUE(contains(error, "World::join()")) << error.what();
    return std::string(error.what());
  };
  error_with(
      {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "1"}});
  error_with({{"PMI_PORT", "127.0.0.1:1"}, {"PMI_ID", "0"}});
  EXPECT_NE(error_with({{"RANK", "1"}}).find("WORLD_SIZE"), std::string::npos);
}

TEST(ProcessGroup, NonMembersCannotMakeASubgroup) {
  run_rank_threads(2, [](const World& world) {
    auto group = ProcessGroup::create(world);
    if (world.rank == 0) {
      EXPECT_EQ(error_of([&] { group.subgroup({1}); }).code(), ErrorCode::kInvalidArgument);
    }
  });
}

TEST(ProcessGroup, ATimeoutMayBeAsLongAsTheTypeAllows) {
  for (const HostLayout& hosts : {HostLayout{2}, HostLayout{1, 1}}) {
    run_rank_threads(hosts, [](const World& world) {
      auto group = ProcessGroup::create(world, {.timeout = std::chrono::milliseconds::max()});
      group.barrier();
    });
  }
}

TEST(ProcessGroup, RanksThatDoNotMeetAreNamed) {
  std::latch begun(2);  // they wait equally long
  run_rank_threads(3, [&](const World& world) {
    if (world.rank == 2) return;
    begun.arrive_and_wait();
    const Error error = error_of(
        [&] { ProcessGroup::create(world, {.timeout = std::chrono::milliseconds(1500)}); });
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
    EXPECT_TRUE(contains(error, "rank 2 did not come")) << error.what();
  });
}

// Named by their world ranks, on one host and on several.
TEST(ProcessGroup, RanksThatDoNotMeetInASubgroupAreNamed) {
  run_rank_threads(HostLayout{3, 1}, [](const World& world) {
    const auto group = ProcessGroup::create(world, {.timeout = std::chrono::milliseconds(2500)});
    const std::string done[] = {"done/1", "done/3"};
    if (world.rank == 0 || world.rank == 2) {
      return world.store->wait(done, Deadline::after(std::chrono::seconds(60)));
    }
    const Error error = error_of([&] { group.subgroup({2, world.rank}); });
    world.store->set(done[world.rank / 2], "", Deadline::after(std::chrono::seconds(60)));
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
    EXPECT_TRUE(contains(error, "rank 2 did not come")) << error.what();
    EXPECT_TRUE(contains(error, fmt::format("in the same order, here 2, {}", world.rank)))
        << error.what();
  });
}

/// The store of a single rank: keys of other ranks never come. Counts its requests.
class LonelyStore final : public RequestStore {
 public:
  std::atomic<int> questions = 0;

 private:
  StoreReply call(StoreRequest request, Deadline deadline) override {
    ++questions;
    MutexLock lock(mutex_);
    auto answers = state_.submit({}, std::move(request));
    if (!answers.empty()) return std::move(answers.front().reply);
    auto reply = state_.cancel({}).value();
    lock.unlock();
    std::this_thread::sleep_until(deadline.when());
    return reply;
  }
  std::string name() const override { return "store of one"; }

  Mutex mutex_;
  StoreState state_ LOCKSTEP_GUARDED_BY(mutex_);
};

// All ranks of a job report it, so the requests of each must not grow with their number. It looks
// for deaths some ten times a second, too.
TEST(ProcessGroup, WhoDoesNotMeetIsFoundWithFewQuestions) {
  const auto store = std::make_shared<LonelyStore>();
  World world = alone();
  world.rank = 1;
  world.size = 200;
  world.store = store;
  const Error error =
      error_of([&] { ProcessGroup::create(world, {.timeout = std::chrono::milliseconds(500)}); });
  EXPECT_TRUE(contains(error, "ranks 0, 2-199 did not come")) << error.what();
  EXPECT_LT(store->questions, 40);
}

TEST(ProcessGroup, DifferentBackEndsMismatch) {
  run_rank_threads(2, [](const World& world) {
    const Error error = error_of(
        [&] { ProcessGroup::create(world, {.backend = world.rank == 0 ? "auto" : "native"}); });
    EXPECT_EQ(error.code(), ErrorCode::kMismatch);
    EXPECT_TRUE(contains(error, "rank 0 has backend 'auto', rank 1 has 'native'")) << error.what();
  });
}

TEST(ProcessGroup, DifferentBuildsMismatch) {
  World world = alone();
  world.size = world.local_size = 2;
  world.store = make_memory_store();
  // The card of rank 1 with another version.
  world.store->set(
      "comm/1/rank/1",
      R"({"build": "0.0.9/w0/be32", "backend": "auto", "host": "h", "address": "127.0.0.1"})",
      Deadline::after(5s));
  const Error error = error_of([&] { ProcessGroup::create(world); });
  EXPECT_EQ(error.code(), ErrorCode::kMismatch);
  EXPECT_TRUE(contains(error, "rank 0 has build '" + build_id() + "', rank 1 has '0.0.9/w0/be32'"))
      << error.what();
}

/// One rank of three calls something else; all must report it, in this and all later calls.
void expect_mismatch(void (*usual)(ProcessGroup&), void (*other)(ProcessGroup&),
                     std::string_view one, std::string_view two) {
  run_rank_threads(3, [&](const World& world) {
    auto group = ProcessGroup::create(world);
    group.barrier();
    const Error error = error_of([&] { (world.rank == 1 ? other : usual)(group); });
    EXPECT_EQ(error.code(), ErrorCode::kMismatch) << error.what();
    for (const auto& text : {one, two, std::string_view("rank 1 called")}) {
      EXPECT_TRUE(contains(error, text)) << error.what();
    }
    const Error again = error_of([&] { group.barrier(); });
    EXPECT_EQ(again.code(), ErrorCode::kMismatch);
    EXPECT_STREQ(again.what(), error.what());
  });
}

float* scratch() {
  thread_local float data[4096];
  return data;
}
void sum_10(ProcessGroup& group) {
  group.all_reduce(scratch(), 10, DType::kFloat32, ReduceOp::kSum).wait();
}

TEST(ProcessGroup, EachDisagreementNamesBothSides) {
  expect_mismatch(
      sum_10, [](ProcessGroup& group) { group.barrier(); }, "all_reduce #2", "barrier #2");
  expect_mismatch(
      sum_10,
      [](ProcessGroup& group) {
        group.all_reduce(scratch(), 11, DType::kFloat32, ReduceOp::kSum).wait();
      },
      "10 elements", "11 elements");
  expect_mismatch(
      sum_10,
      [](ProcessGroup& group) {
        group.all_reduce(scratch(), 10, DType::kInt32, ReduceOp::kSum).wait();
      },
      "float32", "int32");
  expect_mismatch(
      sum_10,
      [](ProcessGroup& group) {
        group.all_reduce(scratch(), 10, DType::kFloat32, ReduceOp::kMax, {.async = true}).wait();
      },
      "sum)", "max)");
  expect_mismatch(
      [](ProcessGroup& group) { group.broadcast(scratch(), 4096, DType::kFloat32, 0).wait(); },
      [](ProcessGroup& group) { group.broadcast(scratch(), 4096, DType::kFloat32, 2).wait(); },
      "root 0", "root 2");
}

TEST(ProcessGroup, EveryCallHasItsNumberAlsoBetweenHosts) {
  run_rank_threads(HostLayout{2, 1}, [](const World& world) {
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(20)});
    group.barrier();
    const Error error = error_of([&] {
      if (world.rank != 0) return group.barrier();
      group.allocate(64);
    });
    EXPECT_EQ(error.code(), ErrorCode::kMismatch) << error.what();
    EXPECT_TRUE(contains(error, "rank 0 called allocate #2")) << error.what();
    EXPECT_TRUE(contains(error, "rank 1 called barrier #2")) << error.what();
  });
}

TEST(ProcessGroup, EachDisagreementOfTheNewerKindsNamesBothSides) {
  expect_mismatch(
      [](ProcessGroup& group) {
        group.reduce(scratch(), 10, DType::kFloat32, ReduceOp::kSum, 0).wait();
      },
      [](ProcessGroup& group) {
        group.reduce(scratch(), 10, DType::kFloat32, ReduceOp::kSum, 2).wait();
      },
      "reduce #2 (float32, 10 elements, sum, root 0)", "root 2");
  expect_mismatch(
      [](ProcessGroup& group) {
        group.gather(scratch(), scratch() + 100, 10, DType::kFloat32, 0).wait();
      },
      [](ProcessGroup& group) {
        group.scatter(scratch(), scratch() + 100, 10, DType::kFloat32, 0).wait();
      },
      "gather #2 (float32, 10 elements, root 0)", "scatter #2 (float32, 10 elements, root 0)");
  expect_mismatch(
      [](ProcessGroup& group) {
        group.all_to_all(scratch(), scratch() + 100, 10, DType::kFloat32).wait();
      },
      [](ProcessGroup& group) {
        group.all_to_all(scratch(), scratch() + 100, 11, DType::kFloat32).wait();
      },
      "10 elements", "11 elements");
}

TEST(ProcessGroup, UnevenCountsThatDoNotAgreeNameBothSides) {
  for (const HostLayout& hosts : {HostLayout{3}, HostLayout{1, 2}, HostLayout{2, 1}}) {
    run_rank_threads(hosts, [](const World& world) {
      auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(20)});
      // Rank 1 sends more than the others expect of it.
      const int64_t counts[] = {3, world.rank == 1 ? 5 : 4, 2};
      const Error error = error_of(
          [&] { group.all_gatherv(scratch(), scratch() + 100, counts, DType::kFloat32).wait(); });
      EXPECT_EQ(error.code(), ErrorCode::kMismatch) << error.what();
      EXPECT_TRUE(contains(error, "all_gatherv #1")) << error.what();
      EXPECT_TRUE(contains(error, "rank 1")) << error.what();
      const Error again = error_of([&] { group.barrier(); });
      EXPECT_STREQ(again.what(), error.what());
    });
  }
}

/// A whole host with another call must learn of it, although gather needs nothing from it.
TEST(ProcessGroup, HostsThatCallOtherThingsMismatch) {
  run_rank_threads(HostLayout{1, 2}, [](const World& world) {
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(20)});
    const Error error = error_of([&] {
      if (world.rank == 0) return sum_10(group);
      group.gather(scratch(), scratch() + 100, 10, DType::kFloat32, 1).wait();
      group.barrier();  // rank 2 only sends, and may be done before the error is known
    });
    EXPECT_EQ(error.code(), ErrorCode::kMismatch) << error.what();
    EXPECT_TRUE(contains(error, "gather #1") && contains(error, "all_reduce #1")) << error.what();
  });
}

TEST(ProcessGroup, BadCountsOfUnevenCallsAreRefusedAndHarmless) {
  auto group = ProcessGroup::create(alone());
  const auto refused = [&](const std::vector<int64_t>& sends, const std::vector<int64_t>& receives,
                           std::string_view text) {
    const Error error = error_of([&] {
      group.all_to_allv(scratch(), sends, scratch() + 9, receives, DType::kInt32).wait();
    });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_TRUE(contains(error, text)) << error.what();
  };
  refused({1, 2}, {1}, "2 send_counts for 1 rank");
  refused({1}, {-1}, "one of the receive_counts is -1");
  refused({1}, {2}, "sends 1 elements to itself and expects 2");
  const int64_t one[] = {1};
  EXPECT_TRUE(
      contains(error_of([&] { group.all_gatherv(nullptr, scratch(), one, DType::kInt32).wait(); }),
               "null pointer"));
  scratch()[0] = 5;
  group.all_gatherv(scratch(), scratch() + 1, one, DType::kFloat32).wait();
  EXPECT_EQ(scratch()[1], 5);
}

TEST(ProcessGroup, KnowsItsPlaceOnTheHost) {
  run_rank_threads(HostLayout{2, 3}, [](const World& world) {
    const auto group = ProcessGroup::create(world);
    EXPECT_EQ(group.local_rank(), world.local_rank);
    EXPECT_EQ(group.local_size(), world.local_size);
    // Ranks 3 and 1, in this order: each alone on its host.
    if (world.rank != 1 && world.rank != 3) return;
    const auto pair = group.subgroup({3, 1});
    EXPECT_EQ(pair.local_size(), 1);
    EXPECT_EQ(pair.world_rank(0), 3);
    EXPECT_EQ(pair.group_rank(1), 1);
  });
}

TEST(ProcessGroup, DestroyEndsEveryCopyAndMayBeRepeated) {
  run_rank_threads(2, [](const World& world) {
    auto group = ProcessGroup::create(world);
    auto copy = group;
    const auto buffer = group.allocate(1000);
    float value = 1;
    Work work = group.all_reduce(&value, 1, DType::kFloat32, ReduceOp::kSum, {.async = true});
    group.destroy();
    EXPECT_TRUE(work.done());
    work.wait();
    EXPECT_EQ(value, 2);
    group.destroy();
    copy.destroy();
    EXPECT_EQ(copy.rank(), world.rank);
    for (const auto& call : std::vector<std::function<void()>>{
             [&] { sum_10(copy); }, [&] { copy.barrier(); },
             [&] {
               (void)copy.subgroup({0, 1});
             },
             [&] { (void)copy.split(0); }, [&] { copy.allocate(1); },
             [&] { copy.send(&value, 1, DType::kFloat32, 1 - world.rank).wait(); }}) {
      const Error error = error_of(call);
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_TRUE(contains(error, "destroyed")) << error.what();
    }
    static_cast<char*>(buffer->data())[999] = 1;
    // The name of a destroyed group may be used again.
    auto next = ProcessGroup::create(world);
    next.barrier();
  });
}

TEST(ProcessGroup, RecvOfAnotherSizeIsAMismatch) {
  run_rank_threads(2, [](const World& world) {
    auto group = ProcessGroup::create(world);
    if (world.rank == 0) {
      group.send(scratch(), 5, DType::kFloat32, 1).wait();
      return;
    }
    const Error error = error_of([&] { group.recv(scratch(), 6, DType::kFloat32, 0).wait(); });
    EXPECT_EQ(error.code(), ErrorCode::kMismatch);
    EXPECT_TRUE(contains(error, "rank 0 sent 5 float32, rank 1 called recv for 6")) << error.what();
  });
}

TEST(ProcessGroup, ARankThatDoesNotComeIsNamedWithWhatItDidLast) {
  std::latch over(2);
  run_rank_threads(3, [&](const World& world) {
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::milliseconds(1500)});
    sum_10(group);
    if (world.rank == 1) return over.wait();
    const Error error = error_of([&] { group.barrier(); });
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
    EXPECT_TRUE(contains(error, "rank 1 (not in it yet, last finished all_reduce #1)"))
        << error.what();
    // The main thread, whose stack could be read, is no rank.
    EXPECT_FALSE(contains(error, "stack of rank")) << error.what();
    EXPECT_EQ(error_of([&] { sum_10(group); }).code(), ErrorCode::kTimeout);
    over.count_down();
  });
}

TEST(ProcessGroup, ARankThatLeftIsToldFromOneThatDied) {
  run_rank_threads(2, [](const World& world) {
    auto group = ProcessGroup::create(world);
    sum_10(group);
    if (world.rank == 1) return;
    const Error error = error_of([&] { group.barrier(); });
    EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
    EXPECT_TRUE(contains(error, "rank 1")) << error.what();
    EXPECT_TRUE(contains(error, "ended its process group")) << error.what();
  });
}

TEST(ProcessGroup, GoesOnWhereThereIsNoMemoryForAnAllocation) {
  const FileSizeLimit limit(16 << 20);
  run_rank_threads(2, [](const World& world) {
    auto group = ProcessGroup::create(world);
    const Error error = error_of([&] { group.allocate(64 << 20); });
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_TRUE(contains(error, "allocate of 64.0 MiB a rank")) << error.what();
    const FlightEntry call = recorded_calls(world.rank).back();
    EXPECT_EQ(call.call, "allocate");
    EXPECT_TRUE(call.failed && call.went_on);
    sum_10(group);
  });
}

size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

TEST(ProcessGroup, LeavesNoDescriptorsAndNoFiles) {
  const size_t before = open_descriptors();
  run_rank_threads(3, [](const World& world) {
    auto group = ProcessGroup::create(world);
    const auto buffer = group.allocate(100'000);
    sum_10(group);
  });
  EXPECT_EQ(open_descriptors(), before);
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    EXPECT_EQ(entry.path().filename().string().find("lockstep"), std::string::npos) << entry;
  }
}

}  // namespace
}  // namespace lockstep::testing
