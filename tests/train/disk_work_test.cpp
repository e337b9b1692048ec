#include "lockstep/train/disk_work.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "lockstep/base/literals.h"
#include "lockstep/deadline.h"
#include "lockstep/error.h"
#include "tests/support/error_of.h"
#include "tests/support/ranks.h"

namespace lockstep {
namespace {

// Rank 1's disk takes longer than the group's timeout.
TEST(DiskWork, WaitsForADiskLongerThanForAStep) {
  testing::run_rank_threads(3, [&](const World& world) {
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(3)});
    do_disk_work(group, "data are indexed", std::chrono::seconds(100), [&] {
      if (world.rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(5000));
    });
    group.barrier();
  });
}

TEST(DiskWork, NamesWhoIsLate) {
  const auto error = error_of([&] {
    testing::run_rank_threads(2, [&](const World& world) {
      auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(20)});
      do_disk_work(group, "data are indexed", std::chrono::seconds(1), [&] {
        if (world.rank == 1) std::this_thread::sleep_for(std::chrono::seconds(3));
      });
    });
  });
  EXPECT_NE(std::string(error.what()).find("data are indexed: rank 1 is not done after 1 s"),
            std::string::npos)
      << error.what();
}

TEST(DiskWork, WaitsForABatchThatTakesLongToCompute) {
  testing::run_rank_threads(2, [&](const World& world) {
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(3)});
    DiskWork work(group, "x", std::chrono::seconds(100));
    work.read([] {});
    if (world.rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(5000));
    work.finish();
  });
}

// A rank that reads nothing is not delayed by a disk.
TEST(DiskWork, WaitsForARankThatComputesAsLongAsForAnyCall) {
  std::atomic<bool> rank_0_gave_up = false;
  std::array<Error, 2> errors = {Error(ErrorCode::kInternal, ""), Error(ErrorCode::kInternal, "")};
  testing::run_rank_threads(2, [&](const World& world) {
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(1)});
    errors[static_cast<size_t>(world.rank)] = error_of([&] {
      DiskWork work(group, "x", std::chrono::seconds(100), 100ms);
      work.read([] {});
      const auto limit = Deadline::after(60s);
      while (world.rank == 1 && !rank_0_gave_up && !limit.passed()) {
        std::this_thread::sleep_for(10ms);
      }
      work.finish();
    });
    rank_0_gave_up = true;
  });
  EXPECT_EQ(errors[0].code(), ErrorCode::kTimeout) << errors[0].what();
}

TEST(DiskWork, WhatOneRankMeetsComesOutThere) {
  std::array<std::string, 2> errors;
  testing::run_rank_threads(2, [&](const World& world) {
    const auto error = error_of([&] {
      auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(20)});
      do_disk_work(group, "x", std::chrono::seconds(20), [&] {
        if (world.rank == 1) throw Error(ErrorCode::kNotFound, "no such data");
      });
    });
    errors[static_cast<size_t>(world.rank)] = error.what();
  });
  EXPECT_EQ(errors[1], "no such data");
  EXPECT_NE(errors[0].find("rank 1"), std::string::npos) << errors[0];
}

}  // namespace
}  // namespace lockstep
