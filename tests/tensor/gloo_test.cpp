// The back end "c10d:gloo": the suite of all back ends, and its own errors.

#include <ATen/ops/full.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <vector>

#include "lockstep/collectives.h"
#include "lockstep/comm/group/backends.h"
#include "lockstep/error.h"
#include "lockstep/tensor/c10d/nccl_group.h"
#include "tests/comm/support/conformance.h"
#include "tests/support/error_of.h"

namespace lockstep::testing {
namespace {

ProcessGroup make(const World& world,
                  std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
  return ProcessGroup::create(world, {.backend = "c10d:gloo", .timeout = timeout});
}

// First in this program: it forks. Ranks that wait for the timeout would be killed.
TEST(Gloo, ARankThatIsKilledIsNamedLongBeforeTheTimeout) {
  const auto ends = run_rank_processes(3, [](const World& world) {
    auto group = make(world, std::chrono::seconds(300));
    std::vector<float> data(100'000, 1);
    const Error error = error_of([&] {
      for (int step = 0;; ++step) {
        if (world.rank == 1 && step == 2) ::raise(SIGKILL);
        group.all_reduce(data.data(), std::ssize(data), DType::kFloat32, ReduceOp::kMax).wait();
      }
    });
    require(error.code() == ErrorCode::kPeerLost, error.what());
    require(has_name(error, "rank 1 went away"), error.what());
    const Error again = error_of([&] { group.barrier(); });
    require(std::string(again.what()) == error.what(), "another error afterwards");
  });
  EXPECT_EQ(ends, (std::vector<int>{0, -SIGKILL, 0}));
}

TEST(Gloo, DoesWhatEveryBackEndDoes) {
  promises = {.fixed_order = false, .shared_memory = false};
  for (const int size : {1, 3}) {
    run_rank_threads(size, [](const World& world) {
      auto group = make(world);
      EXPECT_EQ(group.backend(), "c10d:gloo");
      check_everything(group);
    });
  }
}

TEST(Gloo, TakesTensors) {
  run_rank_threads(2, [](const World& world) {
    auto group = make(world);
    const at::Tensor sum = at::full({1000}, world.rank + 1, at::kFloat);
    all_reduce(group, sum, ReduceOp::kAvg, {.async = true}).wait();
    EXPECT_TRUE(sum.equal(at::full({1000}, 1.5, at::kFloat)));
  });
}

TEST(Gloo, BFloat16IsAddedInFloat32) {
  run_rank_threads(2, [](const World& world) {
    auto group = make(world);
    const at::Tensor sum = at::full({3}, world.rank == 0 ? 256 : 2, at::kBFloat16);
    all_reduce(group, sum, ReduceOp::kSum).wait();
    EXPECT_TRUE(sum.equal(at::full({3}, 258, at::kBFloat16))) << sum;
    const at::Tensor wraps = at::full({3}, 20000, at::kShort);
    all_reduce(group, wraps, ReduceOp::kSum).wait();
    EXPECT_EQ(wraps[0].item<int16_t>(), static_cast<int16_t>(40000));
  });
}

TEST(Gloo, ADisagreementNamesBothSidesAndALateRankIsNamed) {
  run_rank_threads(3, [](const World& world) {
    auto group = make(world);
    auto timed = make(world, std::chrono::milliseconds(1500));
    auto end = make(world);
    const at::Tensor ones = at::full({4}, 1, at::kFloat);
    const Error mismatch = error_of(
        [&] { all_reduce(group, ones, world.rank == 1 ? ReduceOp::kMax : ReduceOp::kSum).wait(); });
    EXPECT_EQ(mismatch.code(), ErrorCode::kMismatch) << mismatch.what();
    EXPECT_NE(std::string(mismatch.what()).find("rank 1 called all_reduce #1"), std::string::npos)
        << mismatch.what();
    if (world.rank != 2) {
      const Error late = error_of([&] { timed.barrier(); });
      EXPECT_EQ(late.code(), ErrorCode::kTimeout) << late.what();
      EXPECT_NE(std::string(late.what()).find("waiting for rank 2"), std::string::npos)
          << late.what();
    }
    end.barrier();
  });
}

TEST(Gloo, ARankThatDoesNotComeToASubgroupIsNamed) {
  run_rank_threads(3, [](const World& world) {
    const auto group = make(world, std::chrono::milliseconds(1500));
    if (world.rank != 1) return;
    const Error error = error_of([&] { group.subgroup({1, 2}); });
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
    EXPECT_STREQ(error.what(),
                 "creating the process group: rank 2 did not come; all members of a sub-group name "
                 "the same ranks in the same order, here 1, 2");
  });
}

TEST(Gloo, ALateMessageIsNamedWhateverCollectivesRunMeanwhile) {
  run_rank_threads(2, [](const World& world) {
    auto group = make(world, std::chrono::milliseconds(1500));
    float data[4] = {};
    Work message;
    if (world.rank == 0) message = group.recv(data, 4, DType::kFloat32, 1, 7);
    const Error end = error_of([&] {
      while (true) group.barrier();
    });
    EXPECT_EQ(end.code(), ErrorCode::kTimeout) << end.what();
    EXPECT_EQ(
        std::string(end.what()).find("recv of 4 float32, tag 7, from rank 1 on rank 0: Gloo:"), 0)
        << end.what();
  });
}

TEST(Gloo, AGroupErrorEndsWhatIsUnderWayOnAllRanksAtOnce) {
  const auto begin = std::chrono::steady_clock::now();
  run_rank_threads(3, [](const World& world) {
    auto group = make(world);
    auto other = make(world);
    float data[5] = {};
    Work message;
    if (world.rank == 0) message = group.send(data, 4, DType::kFloat32, 2);
    const Error error = error_of([&] {
      if (world.rank == 2) group.recv(data, 5, DType::kFloat32, 0).wait();
      group.barrier();
    });
    EXPECT_EQ(error.code(), ErrorCode::kMismatch) << error.what();
    if (world.rank != 2) group.destroy();  // while rank 2's part is still pending
    other.barrier();
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

// Its name is known even without it; nccl_test.cpp has the rest.
TEST(Nccl, IsInTheTableAndSaysWhyItCannotRun) {
  std::string why_not;
  if (nccl_is_built_in(&why_not)) return;
  const Error error = error_of([] { choose_backend("c10d:nccl", GroupSpec{}); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(std::string(error.what()).find("NCCL"), std::string::npos) << error.what();
}

}  // namespace
}  // namespace lockstep::testing
