#include <gtest/gtest.h>

#include <atomic>

#include "lockstep/base/literals.h"
#include "lockstep/store.h"
#include "lockstep/store/memory/memory_store.h"
#include "tests/store/helpers.h"

namespace lockstep {
namespace {

using testing::error_of;
using testing::mentions;
using testing::run_threads;

TEST(Barrier, NobodyLeavesBeforeAllCame) {
  const auto store = make_memory_store();
  constexpr int kSize = 7;
  std::atomic<int> came = 0;
  run_threads(kSize, [&](int rank) {
    for (int round = 1; round <= 5; ++round) {
      ++came;
      store_barrier(*store, "round " + std::to_string(round), rank, kSize, Deadline::after(30s));
      EXPECT_GE(came, round * kSize);
    }
  });
}

TEST(Barrier, OneRankPassesAlone) {
  const auto store = make_memory_store();
  store_barrier(*store, "b", 0, 1, Deadline::after(30s));
}

TEST(Barrier, TimeoutNamesTheRanksThatDidNotCome) {
  const auto store = make_memory_store();
  const auto wait = [&](int rank, std::chrono::milliseconds budget) {
    return error_of([&] { store_barrier(*store, "start", rank, 8, Deadline::after(budget)); });
  };
  EXPECT_EQ(wait(0, 10ms).code(), ErrorCode::kTimeout);  // it counts as come all the same
  const auto error = wait(3, 10ms);
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_TRUE(mentions(error, "'start' on rank 3: ranks 1, 2, 4-7 of 8")) << error.what();
}

TEST(Barrier, ANameServesOnce) {
  const auto store = make_memory_store();
  store_barrier(*store, "b", 0, 1, Deadline::after(30s));
  const auto error = error_of([&] { store_barrier(*store, "b", 0, 1, Deadline::after(30s)); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(mentions(error, "'b'") && mentions(error, "once")) << error.what();
}

TEST(Barrier, RanksMustBeWithinTheSize) {
  const auto store = make_memory_store();
  for (const int rank : {-1, 2}) {
    EXPECT_EQ(error_of([&] { store_barrier(*store, "b", rank, 2, Deadline::after(1s)); }).code(),
              ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace lockstep
