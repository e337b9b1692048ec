#include "lockstep/collectives.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/comm/kernels/element_types.h"
#include "lockstep/error.h"
#include "lockstep/tensor/device/dtype.h"
#include "tests/support/ranks.h"
#include "tests/support/recorded_calls.h"

namespace lockstep {
namespace {

TEST(TensorDType, MapsBothWaysAndNamesWhatItRefuses) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(to_dtype(to_scalar_type(dtype)), dtype);
    EXPECT_EQ(static_cast<int64_t>(c10::elementSize(to_scalar_type(dtype))), size_of(dtype));
  }
  try {
    to_dtype(at::kQInt8);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("QInt8"), std::string::npos) << error.what();
  }
}

TEST(TensorCollectives, GiveWhatTheyPromise) {
  testing::run_rank_threads(3, [](World world) {
    auto group = ProcessGroup::create(world);
    const auto rank = static_cast<double>(world.rank);

    const at::Tensor sum = at::full({7}, rank + 1, at::kDouble);
    all_reduce(group, sum, ReduceOp::kSum).wait();
    EXPECT_TRUE(sum.equal(at::full({7}, 6.0, at::kDouble)));

    const at::Tensor value = at::full({2, 3}, rank, at::kFloat);
    broadcast(group, value, 2).wait();
    EXPECT_TRUE(value.equal(at::full({2, 3}, 2.0, at::kFloat)));

    const at::Tensor rows = at::empty({6, 2}, at::kLong);
    all_gather(group, at::full({2, 2}, world.rank, at::kLong), rows).wait();
    EXPECT_TRUE(rows.select(1, 0).equal(at::arange(6).div(2, "floor")));

    const at::Tensor part = at::empty({2}, at::kInt);
    reduce_scatter(group, at::arange(6, at::kInt), part, ReduceOp::kSum).wait();
    EXPECT_TRUE(part.equal(at::arange(2, at::kInt).add(2 * world.rank).mul(3)));

    const at::Tensor got = at::zeros({4}, at::kBFloat16);
    const at::Tensor mine = at::full({4}, rank, at::kBFloat16);
    Work sent = send(group, mine, (world.rank + 1) % 3);
    recv(group, got, (world.rank + 2) % 3).wait();
    sent.wait();
    EXPECT_TRUE(got.equal(at::full({4}, (world.rank + 2) % 3, at::kBFloat16)));
  });
}

/// A tensor without other owners; `there`: whether it exists.
at::Tensor watched(std::atomic<bool>* there, int64_t count = 1000) {
  *there = true;
  auto* const values = new float[static_cast<size_t>(count)]();
  return at::from_blob(
      values, {count},
      [values, there](void*) {
        *there = false;
        delete[] values;
      },
      at::TensorOptions(at::kFloat));
}

TEST(TensorCollectives, HoldTheirTensorsUntilTheyAreOver) {
  std::atomic<bool> reduced = false;
  std::atomic<bool> received = false;
  std::atomic<bool> looked = false;
  testing::run_rank_threads(2, [&](World world) {
    auto group = ProcessGroup::create(world);
    auto other = ProcessGroup::create(world);
    if (world.rank == 0) {
      all_reduce(group, watched(&reduced), ReduceOp::kSum, {.async = true});
      recv(group, watched(&received), 1);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // enough time to release them
      EXPECT_TRUE(reduced && received);
      looked = true;
    }
    other.barrier();
    if (world.rank == 1) {
      EXPECT_TRUE(looked);
      all_reduce(group, at::ones({1000}), ReduceOp::kSum).wait();
      send(group, at::ones({1000}), 0).wait();
    }
    other.barrier();
    group.destroy();
    EXPECT_FALSE(world.rank == 0 && (reduced || received));
  });
}

TEST(TensorCollectives, HoldTheirTensorsWhateverTheProgramAdds) {
  constexpr int64_t kCount = 1 << 19;
  std::atomic<bool> there = false;
  testing::run_rank_threads(2, [&](World world) {
    auto group = ProcessGroup::create(world);
    auto other = ProcessGroup::create(world);
    if (world.rank == 1) {
      other.barrier();
      all_reduce(group, at::ones({kCount}), ReduceOp::kSum).wait();
      return;
    }
    std::vector<int> order;
    const auto note = [&](int number) {
      EXPECT_TRUE(there) << number;
      order.push_back(number);
    };
    Work work = all_reduce(group, watched(&there, kCount), ReduceOp::kSum, {.async = true})
                    .then([&] { note(1); })
                    .then([&] { note(2); });
    EXPECT_TRUE(there);
    other.barrier();  // before it the other rank does not begin
    work.wait();
    EXPECT_EQ(order, (std::vector{1, 2}));
    EXPECT_FALSE(there);
    work = std::move(work).then([&] { order.push_back(3); });
    work.wait();
    work.wait();
    EXPECT_EQ(order, (std::vector{1, 2, 3}));
  });
}

TEST(TensorCollectives, GoOnWithWhatThrewAfterThem) {
  testing::run_rank_threads(1, [](World world) {
    auto group = ProcessGroup::create(world);
    const at::Tensor one = at::ones({1000});
    std::vector<int> order;
    Work work = all_reduce(group, one, ReduceOp::kSum, {.async = true})
                    .then([&] { order.push_back(1); })
                    .then([&] {
                      order.push_back(2);
                      if (order.size() == 2) throw std::runtime_error("the program's");
                    })
                    .then([&] { order.push_back(3); });
    EXPECT_THROW(work.wait(), std::runtime_error);
    work.wait();
    EXPECT_EQ(order, (std::vector{1, 2, 2, 3}));
  });
}

TEST(TensorCollectives, MoveRowsToWhereTheyBelong) {
  testing::run_rank_threads(3, [](World world) {
    auto group = ProcessGroup::create(world);
    const auto own = [&](at::IntArrayRef shape) { return at::full(shape, world.rank, at::kLong); };
    const bool root = world.rank == 1;

    const at::Tensor sum = own({2});
    reduce(group, sum, ReduceOp::kSum, 1).wait();
    EXPECT_TRUE(sum.equal(at::full({2}, root ? 3 : world.rank, at::kLong)));

    const at::Tensor all = root ? at::empty({3, 2}, at::kLong) : at::Tensor();
    gather(group, own({2}), all, 1).wait();
    if (root) {
      EXPECT_TRUE(all.select(1, 1).equal(at::arange(3)));
    }

    const at::Tensor part = at::empty({1, 2}, at::kLong);
    scatter(group, root ? at::arange(6).view({3, 2}) : at::Tensor(), part, 1).wait();
    EXPECT_TRUE(part.view({2}).equal(at::arange(2).add(2 * world.rank)));

    const at::Tensor turned = at::empty({3}, at::kLong);
    all_to_all(group, at::arange(3).add(10 * world.rank), turned).wait();
    EXPECT_TRUE(turned.equal(at::arange(3).mul(10).add(world.rank)));

    const int64_t rows[] = {2, 0, 3};
    const at::Tensor gathered = at::empty({5, 4}, at::kLong);
    all_gatherv(group, own({rows[world.rank], 4}), gathered, rows).wait();
    EXPECT_EQ(gathered.sum().item<int64_t>(), 3 * 4 * 2);

    // Rank r sends r + 1 rows to every rank.
    const std::vector<int64_t> sends(3, world.rank + 1);
    const int64_t receives[] = {1, 2, 3};
    const at::Tensor exchanged = at::empty({6, 2}, at::kLong);
    all_to_allv(group, own({3 * (world.rank + 1), 2}), sends, exchanged, receives).wait();
    EXPECT_EQ(exchanged.sum().item<int64_t>(), 2 * (2 * 1 + 3 * 2));

    const at::Tensor tensors[] = {own({3}), own({1000, 200})};
    all_reduce_coalesced(group, tensors, ReduceOp::kMax).wait();
    for (const auto& tensor : tensors) EXPECT_TRUE(tensor.eq(2).all().item<bool>());

    const at::Tensor parts[] = {own({2}), own({500, 100})};
    const at::Tensor wholes[] = {at::empty({6}, at::kLong), at::empty({1500, 100}, at::kLong)};
    all_gather_coalesced(group, parts, wholes).wait();
    for (const auto& whole : wholes) {
      EXPECT_TRUE(whole.view({3, -1}).eq(at::arange(3).view({3, 1})).all().item<bool>());
    }
    reduce_scatter_coalesced(group, wholes, parts, ReduceOp::kSum).wait();
    for (const auto& own_part : parts) {
      EXPECT_TRUE(own_part.eq(3 * world.rank).all().item<bool>());
    }

    const at::Tensor flag = at::full({2}, root, at::kBool);
    all_reduce(group, flag, ReduceOp::kSum).wait();
    EXPECT_TRUE(flag.all().item<bool>());
    const at::Tensor complex = at::full({2}, c10::complex<float>(1, 2), at::kComplexFloat);
    all_reduce(group, complex, ReduceOp::kPremulSum, {.factor = 0.5}).wait();
    EXPECT_TRUE(complex.equal(at::full({2}, c10::complex<float>(1.5, 3), at::kComplexFloat)));
  });
}

TEST(TensorCollectives, AreRecordedAsCalledByTheirCallers) {
  testing::run_rank_threads(2, [](World world) {
    auto group = ProcessGroup::create(world);
    const at::Tensor one = at::ones({2});
    const at::Tensor two = at::ones({4});
    const int64_t rows[] = {2, 2};
    const int64_t half[] = {1, 1};
    const auto told = [&](int line) {
      const FlightEntry last = testing::recorded_calls(world.rank).back();
      EXPECT_EQ(last.site, "collectives_test.cpp:" + std::to_string(line)) << last.call;
    };
    all_reduce(group, one, ReduceOp::kSum).wait();
    told(__LINE__ - 1);
    broadcast(group, one, 1).wait();
    told(__LINE__ - 1);
    all_gather(group, one, two).wait();
    told(__LINE__ - 1);
    reduce_scatter(group, two, one, ReduceOp::kSum).wait();
    told(__LINE__ - 1);
    reduce(group, one, ReduceOp::kSum, 0).wait();
    told(__LINE__ - 1);
    gather(group, one, two, 0).wait();
    told(__LINE__ - 1);
    scatter(group, two, one, 0).wait();
    told(__LINE__ - 1);
    all_to_all(group, two, two.clone()).wait();
    told(__LINE__ - 1);
    all_gatherv(group, one, two, rows).wait();
    told(__LINE__ - 1);
    all_to_allv(group, one, half, one.clone(), half).wait();
    told(__LINE__ - 1);
    all_reduce_coalesced(group, std::array{one, two}, ReduceOp::kSum).wait();
    told(__LINE__ - 1);
    all_gather_coalesced(group, std::array{one, one}, std::array{two, two.clone()}).wait();
    told(__LINE__ - 1);
    reduce_scatter_coalesced(group, std::array{two}, std::array{one}, ReduceOp::kSum).wait();
    told(__LINE__ - 1);
    (world.rank == 0 ? send(group, one, 1) : recv(group, one, 0)).wait();
    told(__LINE__ - 1);
  });
}

TEST(TensorCollectives, RefuseWithTheShape) {
  testing::run_rank_threads(1, [](World world) {
    auto group = ProcessGroup::create(world);
    const auto message = [](const auto& call) -> std::string {
      try {
        call();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
        return error.what();
      }
      return "";
    };
    const int64_t rows[] = {2};
    EXPECT_NE(message([&] {
                all_gatherv(group, at::ones({3}), at::ones({3}), rows);
              }).find("rows [2] of 1 elements for 1 rank make no Float [3]"),
              std::string::npos);
    EXPECT_NE(message([&] {
                all_to_allv(group, at::ones({2, 3}), rows, at::ones({2, 4}), rows);
              }).find("different rows"),
              std::string::npos);
    EXPECT_NE(message([&] {
                const at::Tensor mixed[] = {at::ones({2}), at::ones({2}, at::kLong)};
                all_reduce_coalesced(group, mixed, ReduceOp::kSum);
              }).find("in one call"),
              std::string::npos);
    const at::Tensor two[] = {at::ones({2}), at::ones({3})};
    EXPECT_EQ(message([&] { all_gather_coalesced(group, two, std::span(two, 1)); }),
              "all_gather_coalesced: 2 parts and 1 whole");
    const at::Tensor turned[] = {two[1], two[0]};
    EXPECT_NE(message([&] {
                reduce_scatter_coalesced(group, two, turned, ReduceOp::kSum);
              }).find("1 rank with Float [3] on cpu each make no Float [2]"),
              std::string::npos);
    const at::Tensor across = at::ones({3, 4}).t();
    EXPECT_EQ(message([&] { all_reduce(group, across, ReduceOp::kSum); }),
              "all_reduce: needs a contiguous tensor, got Float [4, 3] on cpu with strides "
              "[1, 4]");
    // Their memory differs from their values.
    const at::Tensor pair = at::ones({2}, at::kComplexFloat);
    EXPECT_EQ(message([&] { all_gather(group, pair.conj(), pair); }),
              "all_gather: needs a contiguous tensor, got ComplexFloat [2] on cpu yet to be "
              "conjugated (see resolve_conj())");
    EXPECT_NE(message([&] {
                broadcast(group, two[0]._neg_view(), 0);
              }).find("Float [2] on cpu yet to be negated"),
              std::string::npos);
    EXPECT_EQ(message([&] { all_gather(group, at::ones({3}), at::ones({4})); }),
              "all_gather: 1 rank with Float [3] on cpu each make no Float [4] on cpu");
    EXPECT_NE(message([&] { broadcast(group, at::Tensor(), 0); }).find("undefined"),
              std::string::npos);
    EXPECT_NE(message([&] { all_reduce(group, at::ones({2}), ReduceOp::kBor); }).find("float32"),
              std::string::npos);
  });
}

}  // namespace
}  // namespace lockstep
