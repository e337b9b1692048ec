// Collectives on a device's memory beside the host's (device_group.h). The device is the CPU, and
// its engine is Gloo or one that fails: "c10d:nccl" adds only NCCL.

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <array>
#include <stdexcept>

#include "lockstep/collectives.h"
#include "lockstep/comm/group/backends.h"
#include "lockstep/error.h"
#include "tests/comm/support/conformance.h"
#include "tests/support/error_of.h"
#include "tests/tensor/support/gloo_as_device.h"
#include "tests/tensor/support/on_device.h"

namespace lockstep::testing {
namespace {

using std::chrono::seconds;

std::unique_ptr<GroupImpl> make_on_device(const GroupSpec& spec, Deadline deadline) {
  return std::make_unique<OnDevice>(make_gloo_beside_native(spec, deadline));
}

bool yes(std::string*) {
  return true;
}
std::atomic<bool> is_usable = false;
bool usable(const GroupSpec&, std::string*) {
  return is_usable;
}
bool always(const GroupSpec&, std::string*) {
  return true;
}

[[maybe_unused]] const bool registered =
    register_backend({"test:on_device", "", yes, always, make_on_device}) &&
    register_backend({"test:auto", "", yes, usable, make_gloo_beside_native, /*for_devices=*/true});

ProcessGroup make_group(const World& world, const std::string& backend) {
  return ProcessGroup::create(world, {.backend = backend, .timeout = seconds(60)});
}

TEST(DeviceGroup, DoesWhatEveryBackEndDoes) {
  promises = {.fixed_order = false, .shared_memory = false};
  for (const int size : {1, 3}) {
    run_rank_threads(size, [](const World& world) {
      auto group = make_group(world, "test:on_device");
      check_everything(group);
    });
  }
}

TEST(DeviceGroup, TensorsOfTheDeviceAreTheEnginesAndTheHostsAreNot) {
  engines_made = 0;
  run_rank_threads(2, [](const World& world) {
    auto group = make_group(world, "test:device");
    EXPECT_EQ(group.device(), "cpu");
    int value = world.rank;
    group.all_reduce(&value, 1, DType::kInt32, ReduceOp::kSum).wait();
    const at::Tensor times = at::full({3}, 1, at::kFloat);
    all_reduce(group, times, ReduceOp::kPremulSum, {.factor = world.rank + 1.0}).wait();
    EXPECT_TRUE(times.equal(at::full({3}, 3, at::kFloat)));
    EXPECT_EQ(engines_made, 0);
    group.barrier();
    const std::array<at::Tensor, 2> two = {at::full({2, 2}, world.rank, at::kInt),
                                           at::arange(3).to(at::kInt)};
    all_reduce_coalesced(group, two, ReduceOp::kSum).wait();
    EXPECT_TRUE(two[0].equal(at::full({2, 2}, 1, at::kInt)));
    EXPECT_TRUE(two[1].equal(at::arange(3).mul(2).to(at::kInt)));
    EXPECT_EQ(engines_made, 2);
    const std::array<int64_t, 2> rows = {0, 2};
    const at::Tensor all = at::full({2}, 0, at::kDouble);
    all_gatherv(group, at::full({rows[static_cast<size_t>(world.rank)]}, 7, at::kDouble), all, rows,
                {.async = true})
        .wait();
    EXPECT_TRUE(all.equal(at::full({2}, 7, at::kDouble)));
  });
}

TEST(DeviceGroup, ADisagreementNamesBothSides) {
  run_rank_threads(2, [](const World& world) {
    auto group = make_group(world, "test:device");
    const at::Tensor ones = at::full({4}, 1, at::kFloat);
    const Error error = error_of(
        [&] { all_reduce(group, ones, world.rank == 1 ? ReduceOp::kMax : ReduceOp::kSum).wait(); });
    EXPECT_EQ(error.code(), ErrorCode::kMismatch);
    EXPECT_EQ(cause_of(error.what()),
              "rank 0 called all_reduce #1 (float32, 4 elements, sum), rank 1 called all_reduce #1 "
              "(float32, 4 elements, max)");
  });
}

/// Records what it gets.
class Recorded final : public C10dEngine {
 public:
  Recorded() : C10dEngine(0, 2) {}
  c10::intrusive_ptr<::c10d::Work> _allgather_base(at::Tensor& out, at::Tensor& in,
                                                   const ::c10d::AllgatherOptions&) override {
    return record(out, in);
  }
  c10::intrusive_ptr<::c10d::Work> _reduce_scatter_base(
      at::Tensor& out, at::Tensor& in, const ::c10d::ReduceScatterOptions&) override {
    return record(out, in);
  }
  std::vector<const void*> tensors;
  int waits = 0;

 private:
  struct Ended final : ::c10d::Work {
    explicit Ended(int& waits) : waits_(waits) {}
    bool isCompleted() override { return false; }  // on the device
    bool wait(std::chrono::milliseconds) override { return ++waits_ > 0; }
    int& waits_;
  };
  c10::intrusive_ptr<::c10d::Work> record(const at::Tensor& out, const at::Tensor& in) {
    tensors.insert(tensors.end(), {in.data_ptr(), out.data_ptr()});
    return c10::make_intrusive<Ended>(waits);
  }
};

TEST(C10dDeviceEngine, TakesFlatTensorsAndLeavesTheWaitToTheStream) {
  const auto recorded = c10::make_intrusive<Recorded>();
  const auto engine = make_c10d_device_engine("Recorded", recorded, 2, {}, [] {});
  const EngineCall call{Deadline::after(seconds(10)), [] { return "a call"; }};
  const at::Tensor part = at::full({3}, 1, at::kFloat), whole = at::full({6}, 1, at::kFloat);
  engine->all_gather(part, whole, call);
  engine->reduce_scatter(whole, part, ReduceOp::kSum, call);
  EXPECT_EQ(recorded->tensors, (std::vector<const void*>{part.data_ptr(), whole.data_ptr(),
                                                         whole.data_ptr(), part.data_ptr()}));
  EXPECT_EQ(recorded->waits, 2);
}

/// Throws, or does not end.
class Broken final : public C10dEngine {
 public:
  explicit Broken(bool throws) : C10dEngine(0, 1), throws_(throws) {}
  c10::intrusive_ptr<::c10d::Work> allreduce(std::vector<at::Tensor>&,
                                             const ::c10d::AllreduceOptions&) override {
    if (throws_) throw std::runtime_error("link down\nsecond line");
    return c10::make_intrusive<::c10d::Work>();
  }

 private:
  bool throws_;
};

Error error_with(bool throws) {
  GroupSpec spec;
  spec.world_ranks = {0};
  spec.host_ids = {"here"};
  spec.addresses = {"127.0.0.1"};
  spec.timeout = seconds(60);
  const auto group = make_device_group(
      spec, make_native_group(spec, Deadline::after(seconds(60))),
      {.name = "Broken", .device = at::kCPU, .reduced_as = reduced_by_gloo, .make = [&](Deadline) {
         return make_c10d_device_engine("Broken", c10::make_intrusive<Broken>(throws), 1,
                                        {.on_host = true}, [] { ++engines_aborted; });
       }});
  float value = 1;
  const Waiting waiting{.deadline = Deadline::after(std::chrono::milliseconds(50)),
                        .on_device = true};
  return error_of([&] { group->all_reduce(&value, 1, DType::kFloat32, ReduceOp::kSum, waiting); });
}

TEST(DeviceGroup, AnEngineThatFailsIsAborted) {
  engines_aborted = 0;
  const Error failed = error_with(true);
  EXPECT_EQ(failed.code(), ErrorCode::kIo);
  EXPECT_STREQ(failed.what(), "all_reduce #1 (float32, 1 elements, sum) on rank 0, cpu: link down");
  EXPECT_EQ(engines_aborted, 1);
  const Error late = error_with(false);
  EXPECT_EQ(late.code(), ErrorCode::kTimeout);
  EXPECT_STREQ(late.what(),
               "all_reduce #1 (float32, 1 elements, sum) on rank 0, cpu: Broken did not end it in "
               "time, though every rank had begun");
  EXPECT_EQ(engines_aborted, 2);
}

TEST(DeviceGroup, AutoTakesItWhereItIsUsable) {
  for (const bool there : {false, true}) {
    is_usable = there;
    run_rank_threads(2, [&](const World& world) {
      EXPECT_EQ(make_group(world, "auto").backend(), there ? "test:auto" : "native");
    });
  }
  is_usable = false;
}

TEST(DeviceGroup, OthersRefuseMemoryOfADevice) {
  run_rank_threads(1, [](const World& world) {
    auto group = make_group(world, "native");
    EXPECT_EQ(group.device(), "");
    float value = 1;
    const Error error = error_of(
        [&] { group.all_reduce(&value, 1, DType::kFloat32, ReduceOp::kSum, {.on_device = true}); });
    EXPECT_STREQ(error.what(), "all_reduce: takes memory of the host only");
  });
}

TEST(DevicesOfAGroup, EveryRankNeedsItsOwn) {
  GroupSpec spec;
  spec.size = 3;
  spec.world_ranks = {4, 5, 6};
  std::string why_not;
  spec.devices = {"cuda:0 GPU-a", "cuda:0 GPU-b", "cuda:1 GPU-c"};
  EXPECT_TRUE(spec.has_a_device_each("CUDA", "cuda:", &why_not));
  spec.devices[2] = "cuda:1 GPU-a";
  EXPECT_FALSE(spec.has_a_device_each("CUDA", "cuda:", &why_not));
  EXPECT_EQ(why_not, "rank 4 and rank 6 have one CUDA device (cuda:1 GPU-a)");
  spec.devices[1] = "";
  EXPECT_FALSE(spec.has_a_device_each("CUDA", "cuda:", &why_not));
  EXPECT_EQ(why_not, "rank 5 has no CUDA device");
  EXPECT_FALSE(GroupSpec{}.has_a_device_each("CUDA", "cuda:", &why_not));
  EXPECT_EQ(why_not, "this process has no CUDA device");
  spec.devices = {"npu:0 a", "npu:1 a", "npu:2 a"};
  EXPECT_FALSE(spec.has_a_device_each("CUDA", "cuda:", &why_not));
  EXPECT_EQ(why_not, "rank 4 has no CUDA device");
  spec.rank = 1;
  EXPECT_EQ(spec.device_name(), "npu:1");
}

}  // namespace
}  // namespace lockstep::testing
