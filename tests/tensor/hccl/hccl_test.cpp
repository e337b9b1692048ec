// The back end "hccl" on a stand-in for CANN's libraries: no NPU is needed, and none has been
// tried.

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <array>
#include <thread>

#include "lockstep/base/env.h"
#include "lockstep/collectives.h"
#include "lockstep/comm/group/backends.h"
#include "lockstep/error.h"
#include "lockstep/tensor/device/device_group.h"
#include "lockstep/tensor/hccl/hccl_engine.h"
#include "lockstep/tensor/hccl/hccl_group.h"
#include "lockstep/tensor/hccl/library.h"
#include "tests/comm/support/conformance.h"
#include "tests/support/error_of.h"
#include "tests/tensor/hccl/fake_hccl.h"
#include "tests/tensor/support/guarded_device.h"
#include "tests/tensor/support/on_device.h"

namespace lockstep::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

FakeHccl& load_fake() {
  const auto path = env_or("LOCKSTEP_BIN_DIR", ".") + "/lockstep_fake_hccl.so";
  ::setenv("LOCKSTEP_HCCL_LIBRARY", path.c_str(), 1);
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(::dlerror());
  return *reinterpret_cast<FakeHccl* (*)()>(::dlsym(library, "lockstep_fake_hccl"))();
}

FakeHccl& fake = load_fake();

const hccl::Functions& functions() {
  std::string why_not;
  const auto* const loaded = hccl::load_library(&why_not);
  if (loaded == nullptr) throw std::runtime_error(why_not);
  return *loaded;
}

/// HCCL with the host's memory as the NPU's.
std::unique_ptr<GroupImpl> make_on_cpu(const GroupSpec& spec, Deadline deadline) {
  return make_device_group(spec, make_native_group(spec, deadline),
                           hccl::engine_kind(functions(), spec, spec.rank, at::kCPU));
}

bool is_reduced(DType dtype, ReduceOp op) {
  const bool bitwise = op == ReduceOp::kBand || op == ReduceOp::kBor || op == ReduceOp::kBxor;
  return bitwise ||
         (dtype != DType::kInt64 && dtype != DType::kFloat64 && dtype != DType::kComplex128);
}

std::unique_ptr<GroupImpl> make_suite(const GroupSpec& spec, Deadline deadline) {
  return std::make_unique<OnDevice>(make_on_cpu(spec, deadline), is_reduced);
}

bool yes(std::string*) {
  return true;
}
bool always(const GroupSpec&, std::string*) {
  return true;
}

[[maybe_unused]] const bool registered =
    register_backend({"test:hccl", "", yes, always, make_on_cpu}) &&
    register_backend({"test:suite", "", yes, always, make_suite});

ProcessGroup make(const World& world, const std::string& backend,
                  milliseconds timeout = seconds(60)) {
  return ProcessGroup::create(world, {.backend = backend, .timeout = timeout});
}

class Hccl : public ::testing::Test {
 protected:
  Hccl() {
    fake.devices = 4;
    fake.soc = "Ascend910A";
    fake.operations = 0;
    fake.aborted_streams = 0;
    promises = {.fixed_order = false, .shared_memory = false};
  }
  ~Hccl() override {
    fake.held = false;
    guarded_events.held = false;
    fake.async_error = 0;
    fake.root_error = 0;
    fake.opens_pages = false;
  }
};

// First in this program: they fork.
TEST_F(Hccl, DoesBetweenProcessesWhatEveryBackEndDoes) {
  const auto ends = run_rank_processes(
      {3},
      [](const World& world) {
        auto group = make(world, "test:suite");
        check_everything(group);
        require(fake.operations > 100, "the operations were not HCCL's");
      },
      seconds(120));
  EXPECT_EQ(ends, (std::vector<int>{0, 0, 0}));
}

TEST_F(Hccl, ARankThatIsKilledIsNamedLongBeforeTheTimeout) {
  const auto ends = run_rank_processes(3, [](const World& world) {
    auto group = make(world, "test:hccl", seconds(300));
    const at::Tensor data = at::full({100'000}, 1, at::kFloat);
    const Error error = error_of([&] {
      for (int step = 0;; ++step) {
        if (world.rank == 1 && step == 2) ::raise(SIGKILL);
        all_reduce(group, data, ReduceOp::kMax).wait();
      }
    });
    require(error.code() == ErrorCode::kPeerLost, error.what());
    require(has_name(error, "rank 1"), error.what());
  });
  EXPECT_EQ(ends, (std::vector<int>{0, -SIGKILL, 0}));
}

TEST_F(Hccl, DoesWhatEveryBackEndDoes) {
  for (const char* const soc : {"Ascend910A", "Ascend910B3"}) {
    fake.soc = soc;
    for (const int size : {1, 4}) {
      run_rank_threads(size, [](const World& world) {
        auto group = make(world, "test:suite");
        check_everything(group);
      });
    }
  }
  EXPECT_EQ(fake.communicators, 0);
}

TEST_F(Hccl, ATypeThatItDoesNotReduceIsRefusedBeforeAnythingIsSent) {
  run_rank_threads(2, [](const World& world) {
    auto group = make(world, "test:hccl");
    const at::Tensor ones = at::full({4}, 1, at::kDouble);
    const Error error = error_of([&] { all_reduce(group, ones, ReduceOp::kSum).wait(); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_STREQ(
        error.what(),
        "all_reduce: HCCL on cpu does not reduce float64; it reduces bool, int8, uint8, "
        "int16, int32, float16, bfloat16, float32 and complex64. Convert the tensor to one "
        "of them, or call with a copy on the CPU, where native takes every type");
    EXPECT_EQ(fake.operations, 0);
    broadcast(group, ones, 1).wait();  // bytes move, whatever they are
    all_reduce(group, ones.to(at::kFloat), ReduceOp::kSum).wait();
    EXPECT_GT(fake.operations, 0);
  });
}

TEST_F(Hccl, NarrowIntegersWrapAndBFloat16IsAddedInFloat32OnTheTrainingSeries) {
  run_rank_threads(2, [](const World& world) {
    auto group = make(world, "test:hccl");
    const at::Tensor bytes = at::full({3}, 100, at::kChar);
    all_reduce(group, bytes, ReduceOp::kSum).wait();
    EXPECT_EQ(bytes[0].item<int>(), static_cast<int8_t>(200));
    const at::Tensor sum = at::full({3}, world.rank == 0 ? 256 : 2, at::kBFloat16);
    all_reduce(group, sum, ReduceOp::kSum).wait();
    EXPECT_TRUE(sum.equal(at::full({3}, 258, at::kBFloat16))) << sum;
  });
}

/// Outlives the test, whose operation the stand-in keeps.
at::Tensor& lasting() {
  static at::Tensor tensor = at::full({100}, 1, at::kFloat);
  return tensor;
}

TEST_F(Hccl, AnOperationThatDoesNotEndIsATimeoutAndItsStreamIsAborted) {
  fake.held = true;
  run_rank_threads(1, [](const World& world) {
    auto group = make(world, "test:hccl", milliseconds(300));
    const Error late = error_of([&] { all_reduce(group, lasting(), ReduceOp::kSum).wait(); });
    EXPECT_EQ(late.code(), ErrorCode::kTimeout);
    EXPECT_STREQ(
        late.what(),
        "all_reduce #1 (float32, 100 elements, sum) on rank 0, cpu: HCCL did not end it in "
        "time, though every rank had begun");
    EXPECT_EQ(error_of([&] { group.barrier(); }).code(), ErrorCode::kTimeout);
  });
  EXPECT_EQ(fake.aborted_streams, 1);
  EXPECT_EQ(fake.communicators, 1);  // left to the process
  --fake.communicators;
}

TEST_F(Hccl, AnErrorOfTheCommunicatorIsTold) {
  run_rank_threads(1, [](const World& world) {
    auto group = make(world, "test:hccl");
    all_reduce(group, lasting(), ReduceOp::kSum).wait();
    fake.async_error = 21;
    const Error error = error_of([&] { all_reduce(group, lasting(), ReduceOp::kSum).wait(); });
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_STREQ(error.what(),
                 "all_reduce #2 (float32, 100 elements, sum) on rank 0, cpu: HCCL: HCCL_E_REMOTE "
                 "(error 21)");
  });
  --fake.communicators;
}

TEST_F(Hccl, AnErrorOfTheRootIsToldByAllRanks) {
  fake.root_error = 21;
  run_rank_threads(2, [](const World& world) {
    auto group = make(world, "test:hccl");
    const at::Tensor one = at::full({1}, 1, at::kFloat);
    const Error error = error_of([&] { all_reduce(group, one, ReduceOp::kSum).wait(); });
    EXPECT_NE(
        std::string(error.what()).find("HcclGetRootInfo on rank 0: HCCL: HCCL_E_REMOTE (error 21)"),
        std::string::npos)
        << error.what();
  });
}

// The device of libtorch that torch_npu brings, here the guarded one.

World on_device(World world, int device) {
  world.device = device;
  return world;
}

at::Tensor away(const at::Tensor& tensor, int rank) {
  return tensor.to(guarded_device(rank));
}

TEST_F(Hccl, AutoTakesItForTensorsOfNpusAndNativeForTheHosts) {
  fake.opens_pages = true;
  run_rank_threads(3, [](const World& given) {
    const World world = on_device(given, given.rank);
    auto group = make(world, "auto");
    ASSERT_EQ(group.backend(), "hccl");
    EXPECT_EQ(group.device(), guarded_device(world.rank).str());
    const at::Tensor host = at::full({3}, 1, at::kDouble);
    all_reduce(group, host, ReduceOp::kSum).wait();
    EXPECT_TRUE(host.equal(at::full({3}, 3, at::kDouble)));
    EXPECT_EQ(fake.operations, 0);
    group.barrier();

    const at::Tensor sum = away(at::full({7}, world.rank + 1.0, at::kFloat), world.rank);
    all_reduce(group, sum, ReduceOp::kAvg).wait();
    EXPECT_TRUE(sum.cpu().equal(at::full({7}, 2.0, at::kFloat)));
    EXPECT_GE(fake.operations, 1);
    const at::Tensor rows = away(at::full({6}, 0, at::kFloat), world.rank);
    all_gather(group, away(at::full({2}, double(world.rank), at::kFloat), world.rank), rows).wait();
    EXPECT_TRUE(rows.cpu().equal(at::arange(6).floor_divide(2).to(at::kFloat)));
    const at::Tensor part = away(at::full({2}, 0, at::kFloat), world.rank);
    reduce_scatter(group, away(at::arange(6, at::kFloat), world.rank), part, ReduceOp::kSum).wait();
    EXPECT_TRUE(
        part.cpu().equal(at::arange(2 * world.rank, 2 * world.rank + 2, at::kFloat).mul(3)));
    const at::Tensor turned = away(at::full({3}, 0, at::kFloat), world.rank);
    all_to_all(group, away(at::full({3}, double(world.rank), at::kFloat), world.rank), turned)
        .wait();
    EXPECT_TRUE(turned.cpu().equal(at::arange(3, at::kFloat)));
    const at::Tensor moved = away(at::full({5}, double(world.rank), at::kDouble), world.rank);
    broadcast(group, moved, 2).wait();
    EXPECT_TRUE(moved.cpu().equal(at::full({5}, 2, at::kDouble)));
  });
}

TEST_F(Hccl, CallsReturnBeforeTheDeviceHasEndedThem) {
  fake.opens_pages = true;
  run_rank_threads(1, [](const World& given) {
    auto group = make(on_device(given, 0), "hccl");
    const at::Tensor sum = away(at::full({7}, 2.0, at::kFloat), 0);
    const int waits = guarded_waits();
    guarded_events.held = true;
    for (int i = 0; i < 4; ++i) all_reduce(group, sum, ReduceOp::kSum, {.async = true}).wait();
    EXPECT_GE(fake.operations, 4);
    Work fifth = all_reduce(group, sum, ReduceOp::kSum, {.async = true});
    EXPECT_FALSE(fifth.done());  // so many are in flight at most
    guarded_events.held = false;
    fifth.wait();
    EXPECT_EQ(guarded_waits(), waits);
    EXPECT_TRUE(sum.cpu().equal(at::full({7}, 2.0, at::kFloat)));
  });
}

TEST_F(Hccl, ACoalescedCallIsJoinedByTheStreamBeforeItsCopies) {
  fake.opens_pages = true;
  run_rank_threads(1, [](const World& given) {
    auto group = make(on_device(given, 0), "hccl");
    const std::array<at::Tensor, 2> two = {away(at::full({7}, 2.0, at::kFloat), 0),
                                           away(at::full({3}, 5.0, at::kFloat), 0)};
    Work work = all_reduce_coalesced(group, two, ReduceOp::kSum, {.async = true});
    while (!work.done()) std::this_thread::yield();
    guarded_events.blocked = 0;
    work.wait();
    EXPECT_EQ(guarded_events.blocked, 1);
    EXPECT_TRUE(two[0].cpu().equal(at::full({7}, 2.0, at::kFloat)));
    EXPECT_TRUE(two[1].cpu().equal(at::full({3}, 5.0, at::kFloat)));
  });
}

TEST_F(Hccl, ACallThatTheDeviceDoesNotEndFailsTheNextOnes) {
  fake.opens_pages = true;
  run_rank_threads(1, [](const World& given) {
    auto group = make(on_device(given, 0), "hccl", milliseconds(300));
    const at::Tensor sum = away(at::full({7}, 2.0, at::kFloat), 0);
    guarded_events.held = true;
    const Error late = error_of([&] {
      while (true) all_reduce(group, sum, ReduceOp::kSum).wait();
    });
    guarded_events.held = false;
    EXPECT_EQ(late.code(), ErrorCode::kTimeout);
    EXPECT_EQ(std::string(late.what())
                  .find("all_reduce #1 (float32, 7 elements, sum) on rank 0, privateuseone:0: HCCL "
                        "did not end it in time, though every rank had begun"),
              0)
        << late.what();
  });
  EXPECT_GE(fake.aborted_streams, 1);
  --fake.communicators;
}

TEST_F(Hccl, EveryRankNeedsAnNpuOfItsOwn) {
  run_rank_threads(2, [](const World& given) {
    const World world = on_device(given, 0);
    EXPECT_EQ(make(world, "auto").backend(), "native");
    const Error error = error_of([&] { make(world, "hccl"); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("rank 0 and rank 1 have one Ascend device"),
              std::string::npos)
        << error.what();
  });
  fake.devices = 1;
  EXPECT_EQ(name_npu(on_device(World{}, 1)), "");
  EXPECT_EQ(name_npu(on_device(World{}, 0)), guarded_device(0).str() + " /0");
  ::setenv("ASCEND_RT_VISIBLE_DEVICES", "5,3", 1);
  EXPECT_EQ(name_npu(on_device(World{}, 0)), guarded_device(0).str() + " /5");
  ::unsetenv("ASCEND_RT_VISIBLE_DEVICES");
}

}  // namespace
}  // namespace lockstep::testing
