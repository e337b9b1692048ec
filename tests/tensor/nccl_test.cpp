// The back end "c10d:nccl" on a CUDA device; built if NCCL is present. Without a device it must
// report that.

#include "lockstep/comm/kernels/element_types.h"

#include <ATen/Context.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "lockstep/collectives.h"
#include "lockstep/comm/group/backends.h"
#include "lockstep/error.h"
#include "lockstep/tensor/device/dtype.h"
#include "tests/comm/support/conformance.h"
#include "tests/support/error_of.h"

namespace lockstep::testing {
namespace {

ProcessGroup make_nccl(const World& world) {
  return ProcessGroup::create(world, {.backend = "c10d:nccl", .timeout = std::chrono::minutes(1)});
}

TEST(Nccl, TakesEveryTypeOnTheDevice) {
  if (!at::hasCUDA()) {
    std::string why_not;
    EXPECT_FALSE(GroupSpec{}.has_a_device_each("CUDA", "cuda:", &why_not));
    const Error error = error_of([] { choose_backend("c10d:nccl", GroupSpec{}); });
    EXPECT_NE(std::string(error.what()).find("no CUDA device"), std::string::npos) << error.what();
    return;
  }
  run_rank_threads(1, [](const World& world) {
    auto group = make_nccl(world);
    EXPECT_EQ(group.device(), "cuda:0");
    for (int i = 0; i < kNumDTypes; ++i) {
      const auto dtype = static_cast<DType>(i);
      const at::Tensor in = at::arange(2, at::TensorOptions(at::kCUDA)).to(to_scalar_type(dtype));
      for (int k = 0; k < kNumReduceOps; ++k) {
        const auto op = static_cast<ReduceOp>(k);
        if (!can_reduce(dtype, op)) continue;
        const at::Tensor sum = in.clone();
        all_reduce(group, sum, op).wait();
        EXPECT_TRUE(sum.equal(in)) << to_string(dtype) << " " << to_string(op);
        reduce(group, sum, op, 0).wait();
        const at::Tensor part = at::zeros_like(in);
        reduce_scatter(group, in, part, op).wait();
        EXPECT_TRUE(sum.equal(in) && part.equal(in)) << to_string(dtype) << " " << to_string(op);
      }
      const at::Tensor moved = at::zeros_like(in);
      all_to_all(group, in, moved).wait();
      EXPECT_TRUE(moved.equal(in)) << to_string(dtype);
    }
  });
}

TEST(Nccl, MemoryOfTheHostIsNatives) {
  if (!at::hasCUDA()) return;  // reported above
  promises = {};
  run_rank_threads(1, [](const World& world) {
    auto group = make_nccl(world);
    check_everything(group);
  });
}

TEST(Nccl, ManyRanksOfOneDeviceGoByWayOfTheHost) {
  if (!at::hasCUDA()) return;
  run_rank_threads(3, [](World world) {
    world.device = 0;
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::minutes(1)});
    EXPECT_EQ(group.backend(), "native");
    const at::Tensor sum = at::full({1000}, world.rank + 1.0, at::TensorOptions(at::kCUDA));
    all_reduce(group, sum, ReduceOp::kSum).wait();
    EXPECT_TRUE(sum.cpu().equal(at::full({1000}, 6.0, at::kFloat)));
  });
}

}  // namespace
}  // namespace lockstep::testing
