// Collectives on tensors that are not on the CPU.
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <array>

#include "lockstep/collectives.h"
#include "lockstep/error.h"
#include "tests/support/error_of.h"
#include "tests/support/ranks.h"
#include "tests/tensor/support/guarded_device.h"

namespace lockstep {
namespace {

using testing::guarded_device;

/// A copy on the rank's device.
at::Tensor away(const at::Tensor& tensor, int rank) {
  return tensor.to(guarded_device(rank));
}

at::Tensor empty_away(at::IntArrayRef sizes, int rank) {
  return at::empty(sizes, at::TensorOptions().dtype(at::kFloat).device(guarded_device(rank)));
}

void expect_values(const at::Tensor& tensor, const at::Tensor& wanted) {
  EXPECT_EQ(tensor.device().type(), c10::DeviceType::PrivateUse1);
  EXPECT_TRUE(tensor.cpu().equal(wanted)) << tensor.cpu() << "\nnot\n" << wanted;
}

at::Tensor counted(int from, int to) {
  return at::arange(from, to, at::kFloat);
}

constexpr int kRanks = 3;

TEST(DeviceCollectives, ReduceAndMoveWhatIsNotOnTheCpu) {
  testing::run_rank_threads(kRanks, [](World world) {
    auto group = ProcessGroup::create(world);
    const int rank = world.rank;

    const at::Tensor sum = away(at::full({7}, rank + 1.0, at::kFloat), rank);
    all_reduce(group, sum, ReduceOp::kSum).wait();
    expect_values(sum, at::full({7}, 6.0, at::kFloat));

    const at::Tensor value = away(at::full({2, 3}, double(rank), at::kFloat), rank);
    broadcast(group, value, 2).wait();
    expect_values(value, at::full({2, 3}, 2.0, at::kFloat));

    const at::Tensor rows = empty_away({6}, rank);
    all_gather(group, away(counted(2 * rank, 2 * rank + 2), rank), rows).wait();
    expect_values(rows, counted(0, 6));

    const at::Tensor part = empty_away({2}, rank);
    reduce_scatter(group, away(counted(0, 6), rank), part, ReduceOp::kSum).wait();
    expect_values(part, counted(2 * rank, 2 * rank + 2).mul(3));

    const at::Tensor turned = empty_away({3}, rank);
    all_to_all(group, away(at::full({3}, double(rank), at::kFloat), rank), turned).wait();
    expect_values(turned, counted(0, 3));
  });
}

TEST(DeviceCollectives, OfARootTouchOnlyWhatTheyMay) {
  testing::run_rank_threads(kRanks, [](World world) {
    auto group = ProcessGroup::create(world);
    const int rank = world.rank;
    const bool root = rank == 1;

    const at::Tensor sum = away(at::full({4}, rank + 1.0, at::kFloat), rank);
    reduce(group, sum, ReduceOp::kSum, 1).wait();
    expect_values(sum, at::full({4}, root ? 6.0 : rank + 1.0, at::kFloat));

    const at::Tensor all = root ? empty_away({3}, rank) : at::Tensor();
    gather(group, away(at::full({1}, double(rank), at::kFloat), rank), all, 1).wait();
    if (root) expect_values(all, counted(0, 3));

    const at::Tensor own = empty_away({1}, rank);
    scatter(group, root ? away(counted(0, 3), rank) : at::Tensor(), own, 1).wait();
    expect_values(own, at::full({1}, double(rank), at::kFloat));
  });
}

TEST(DeviceCollectives, OfUnevenPartsManyTensorsAndTwoRanks) {
  testing::run_rank_threads(kRanks, [](World world) {
    auto group = ProcessGroup::create(world);
    const int rank = world.rank;

    const std::array<int64_t, kRanks> one_more_each = {0, 1, 2};
    const at::Tensor rows = empty_away({3}, rank);
    all_gatherv(group, away(at::full({rank}, double(rank), at::kFloat), rank), rows, one_more_each)
        .wait();
    expect_values(rows, at::full({3}, 2.0, at::kFloat).sub(at::arange(3).eq(0).to(at::kFloat)));

    const std::array<int64_t, kRanks> ones = {1, 1, 1};
    const at::Tensor turned = empty_away({3}, rank);
    all_to_allv(group, away(at::full({3}, double(rank), at::kFloat), rank), ones, turned, ones)
        .wait();
    expect_values(turned, counted(0, 3));

    const std::array<at::Tensor, 2> two = {away(counted(0, 2), rank), counted(2, 4)};
    all_reduce_coalesced(group, two, ReduceOp::kSum).wait();
    expect_values(two[0], counted(0, 2).mul(3));
    EXPECT_TRUE(two[1].equal(counted(2, 4).mul(3)));

    const at::Tensor got = empty_away({4}, rank);
    Work sent = send(group, away(counted(rank, rank + 4), rank), (rank + 1) % kRanks);
    recv(group, got, (rank + 2) % kRanks).wait();
    sent.wait();
    const int from = (rank + 2) % kRanks;
    expect_values(got, counted(from, from + 4));
  });
}

/// Without this the tests above could not fail.
TEST(GuardedDevice, EndsWhoeverTouchesItsMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const at::Tensor tensor = away(counted(0, 4), 0);
  EXPECT_EXIT(*static_cast<volatile float*>(tensor.data_ptr()) = 1,
              ::testing::KilledBySignal(SIGSEGV), "");
}

/// Large enough to run in the group's thread.
constexpr int64_t kMany = 1 << 20;

TEST(DeviceCollectives, RunBesideOthersAndOneRankMayBeOnTheCpu) {
  testing::run_rank_threads(2, [](World world) {
    auto group = ProcessGroup::create(world);
    const auto place = world.rank == 0 ? c10::Device(at::kCPU) : guarded_device(1);
    const at::Tensor first = at::full({kMany}, 1.0, at::kFloat).to(place);
    const at::Tensor second = at::full({kMany}, 2.0, at::kFloat).to(place);
    Work one = all_reduce(group, first, ReduceOp::kSum, {.async = true});
    Work two = all_reduce(group, second, ReduceOp::kAvg, {.async = true});
    two.wait();
    one.wait();
    one.wait();  // again
    EXPECT_TRUE(first.cpu().equal(at::full({kMany}, 2.0, at::kFloat)));
    EXPECT_TRUE(second.cpu().equal(at::full({kMany}, 2.0, at::kFloat)));
  });
}

TEST(DeviceCollectives, OfADroppedWorkArriveAllTheSame) {
  testing::run_rank_threads(2, [](World world) {
    auto group = ProcessGroup::create(world);
    std::array<at::Tensor, 8> tensors;
    for (auto& tensor : tensors) {
      tensor = away(at::full({kMany}, 1.0, at::kFloat), world.rank);
      all_reduce(group, tensor, ReduceOp::kSum, {.async = true});
    }
    group.barrier();
    for (const auto& tensor : tensors) expect_values(tensor, at::full({kMany}, 2.0, at::kFloat));
  });
}

/// While it lives, no event of the device passes.
class HeldEvents {
 public:
  HeldEvents() { testing::guarded_events.held = true; }
  ~HeldEvents() { testing::guarded_events.held = false; }
  HeldEvents(const HeldEvents&) = delete;
  HeldEvents& operator=(const HeldEvents&) = delete;
};

TEST(DeviceCollectives, NoCallWaitsForTheDevice) {
  testing::run_rank_threads(1, [](World world) {
    auto group = ProcessGroup::create(world);
    const at::Tensor sum = away(at::full({kMany}, 3.0, at::kFloat), 0);
    const std::array<at::Tensor, 1> one = {away(counted(0, 4), 0)};
    Work first, second;
    const int waits = testing::guarded_waits();
    {
      const HeldEvents held;
      first = all_reduce(group, sum, ReduceOp::kSum, {.async = true});
      second = all_reduce_coalesced(group, one, ReduceOp::kSum, {.async = true});
      EXPECT_FALSE(first.done());  // the group waits for the values
    }
    testing::guarded_events.blocked = 0;
    first.wait();
    second.wait();
    EXPECT_EQ(testing::guarded_waits(), waits);
    EXPECT_GE(testing::guarded_events.blocked, 2);  // the streams do
    expect_values(sum, at::full({kMany}, 3.0, at::kFloat));
    expect_values(one[0], counted(0, 4));
  });
}

TEST(DeviceCollectives, ADeviceThatDoesNotComputeTheValuesInTimeIsNamed) {
  testing::run_rank_threads(1, [](World world) {
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::milliseconds(200)});
    const at::Tensor sum = away(counted(0, 4), 0);
    const HeldEvents held;
    const Error error = error_of([&] { all_reduce(group, sum, ReduceOp::kSum).wait(); });
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
    EXPECT_EQ(std::string(error.what())
                  .find("the work of privateuseone:0 that computes the values "
                        "to send did not end in time"),
              0)
        << error.what();
  });
}

TEST(DeviceCollectives, RefuseTensorsWithoutValues) {
  testing::run_rank_threads(1, [](World world) {
    auto group = ProcessGroup::create(world);
    const at::Tensor none = at::empty({3}, at::TensorOptions().device(at::kMeta));
    const Error error = error_of([&] { all_reduce(group, none, ReduceOp::kSum).wait(); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_STREQ(error.what(), "all_reduce: needs a contiguous tensor, got Float [3] on meta");
  });
}

}  // namespace
}  // namespace lockstep
