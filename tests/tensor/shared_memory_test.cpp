#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "lockstep/collectives.h"
#include "lockstep/error.h"
#include "lockstep/tensor/tensor_arena.h"
#include "tests/support/ranks.h"

namespace lockstep {
namespace {

constexpr int64_t kBlock = TensorArena::kMinBytes;
constexpr int64_t kFloats = kBlock / 4;

TEST(SharedTensor, LiesInTheBufferAndKeepsItAlive) {
  testing::run_rank_threads(2, [](World world) {
    auto group = ProcessGroup::create(world);
    auto buffer = group.allocate(256);
    const at::Tensor tensor = from_shared(buffer, 64, {2, 3}, at::kFloat, {1, 2});
    EXPECT_EQ(tensor.data_ptr(), static_cast<char*>(buffer->data()) + 64);
    const std::weak_ptr<SharedBuffer> alive = buffer;
    buffer.reset();
    EXPECT_FALSE(alive.expired());
    tensor.fill_(world.rank + 1);
    all_reduce(group, tensor.t(), ReduceOp::kSum).wait();
    EXPECT_TRUE(tensor.equal(at::ones({2, 3}).mul(3)));
  });
}

TEST(SharedTensor, RefusesWhatDoesNotFit) {
  testing::run_rank_threads(1, [](World world) {
    auto group = ProcessGroup::create(world);
    auto buffer = group.allocate(64);
    EXPECT_NO_THROW(from_shared(buffer, 0, {8}, at::kDouble));
    EXPECT_THROW(from_shared(buffer, 8, {8}, at::kDouble), Error);
    EXPECT_THROW(from_shared(buffer, 4, {1}, at::kDouble), Error);
    EXPECT_THROW(from_shared(buffer, -8, {1}, at::kDouble), Error);
  });
}

/// An arena of `count` blocks of kBlock bytes in a group of one.
std::shared_ptr<TensorArena> make_arena(int count) {
  std::shared_ptr<TensorArena> arena;
  testing::run_rank_threads(1, [&](World world) {
    auto group = ProcessGroup::create(world);
    const std::vector<int64_t> blocks(static_cast<size_t>(count), kBlock);
    arena = TensorArena::make(group.allocate(TensorArena::bytes_needed(blocks)), blocks);
  });
  return arena;
}

TEST(TensorArena, ServesTensorsOfItsSizesWhileBlocksAreFree) {
  const auto arena = make_arena(2);
  EXPECT_FALSE(arena->holds(at::empty({kFloats}).data_ptr()));  // it serves no thread yet
  TensorArena::serve_this_thread(arena);
  std::optional<at::Tensor> first = at::empty({kFloats});
  const at::Tensor second = at::ones({2, kFloats / 2});
  EXPECT_TRUE(arena->holds(first->data_ptr()));
  EXPECT_TRUE(arena->holds(second.data_ptr()));
  EXPECT_NE(first->data_ptr(), second.data_ptr());
  EXPECT_FALSE(arena->holds(at::empty({kFloats}).data_ptr()));      // all taken
  EXPECT_FALSE(arena->holds(at::empty({kFloats + 1}).data_ptr()));  // another size
  const void* freed = first->data_ptr();
  std::thread([&] { first.reset(); }).join();
  const at::Tensor again = at::empty({kFloats});
  EXPECT_EQ(again.data_ptr(), freed);
  EXPECT_TRUE(second.equal(at::ones({2, kFloats / 2})));
  TensorArena::stop_serving_this_thread(arena);
}

TEST(TensorArena, ServesItsOwnThreadOnly) {
  const auto arena = make_arena(1);
  TensorArena::serve_this_thread(arena);
  std::thread([&] { EXPECT_FALSE(arena->holds(at::empty({kFloats}).data_ptr())); }).join();
  TensorArena::stop_serving_this_thread(arena);
  EXPECT_FALSE(arena->holds(at::empty({kFloats}).data_ptr()));
}

TEST(TensorArena, SeveralServeAThreadTheLatestFirst) {
  const auto one = make_arena(1);
  const auto two = make_arena(1);
  TensorArena::serve_this_thread(one);
  TensorArena::serve_this_thread(two);
  const at::Tensor first = at::empty({kFloats});
  const at::Tensor second = at::empty({kFloats});
  EXPECT_TRUE(two->holds(first.data_ptr()));
  EXPECT_TRUE(one->holds(second.data_ptr()));
  TensorArena::stop_serving_this_thread(two);
  TensorArena::stop_serving_this_thread(one);
}

TEST(TensorArena, LivesAsLongAsItsTensors) {
  auto arena = make_arena(1);
  const std::weak_ptr<TensorArena> alive = arena;
  TensorArena::serve_this_thread(arena);
  std::optional<at::Tensor> tensor = at::zeros({kFloats});
  TensorArena::stop_serving_this_thread(arena);
  ASSERT_TRUE(arena->holds(tensor->data_ptr()));
  arena.reset();
  tensor->add_(1);
  EXPECT_FALSE(alive.expired());
  tensor.reset();
  EXPECT_TRUE(alive.expired());
}

TEST(TensorArena, AnswersTheRawInterface) {
  const auto arena = make_arena(1);
  c10::Allocator* const allocator = c10::GetAllocator(c10::DeviceType::CPU);
  TensorArena::serve_this_thread(arena);
  void* inside = allocator->raw_allocate(kBlock);
  void* outside = allocator->raw_allocate(kBlock);
  TensorArena::stop_serving_this_thread(arena);
  EXPECT_TRUE(arena->holds(inside));
  EXPECT_FALSE(arena->holds(outside));
  allocator->raw_deallocate(inside);
  allocator->raw_deallocate(outside);
  TensorArena::serve_this_thread(arena);
  EXPECT_EQ(at::empty({kFloats}).data_ptr(), inside);
  TensorArena::stop_serving_this_thread(arena);
}

}  // namespace
}  // namespace lockstep
