// A group is for one thread at a time: a second thread gets an error at once.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <string_view>
#include <thread>

#include "lockstep/comm/fault_point.h"
#include "lockstep/error.h"
#include "lockstep/process_group.h"
#include "tests/comm/support/conformance.h"
#include "tests/support/error_of.h"

namespace lockstep::testing {
namespace {

std::atomic<bool> rank_0_is_in_barrier;

void note_barrier(int world_rank, OpKind kind, FaultPoint point) {
  if (world_rank == 0 && kind == OpKind::kBarrier && point == FaultPoint::kEntered)
    rank_0_is_in_barrier = true;
}

void require_refused(const Error& error, std::string_view call) {
  const std::string_view text = error.what();
  require(error.code() == ErrorCode::kInvalidArgument, error.what());
  require(text.starts_with(fmt::format("{} at one_thread_test.cpp:", call)), error.what());
  for (const auto* part : {"another thread of rank 0 is in barrier at one_thread_test.cpp:",
                           "of the same group, 'comm/1'"}) {
    require(text.find(part) != std::string_view::npos, error.what());
  }
}

TEST(OneThread, ASecondOneIsRefusedAtOnceAndTheFirstGoesOn) {
  for (const HostLayout& hosts : {HostLayout{2}, HostLayout{2, 1}}) {
    rank_0_is_in_barrier = false;
    fault_hook = note_barrier;
    std::latch refused(1);
    run_rank_threads(hosts, [&](const World& world) {
      auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(60)});
      float value = 1;
      const auto sum = [&](bool async) {
        return group.all_reduce(&value, 1, DType::kFloat32, ReduceOp::kSum, {.async = async});
      };
      if (world.rank == 0) {
        std::thread other([&] { group.barrier(); });
        while (!rank_0_is_in_barrier) std::this_thread::yield();
        const Error at_once = error_of([&] { sum(false).wait(); });
        const Error queued = error_of([&] { sum(true).wait(); });
        const Error blocking = error_of([&] { group.split(0); });
        refused.count_down();
        other.join();
        require_refused(at_once, "all_reduce");
        require_refused(queued, "all_reduce");
        require_refused(blocking, "split");
      } else {
        refused.wait();
        group.barrier();
      }
      sum(false).wait();
      require(value == static_cast<float>(world.size), "the group does not go on");
    });
    fault_hook = nullptr;
  }
}

TEST(OneThread, AnotherMayStartWhatRunsInTheGroupsThread) {
  run_rank_threads(2, [](const World& world) {
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(60)});
    float value = 1;
    for (int turn = 0; turn < 100; ++turn) {
      Work work;
      std::thread([&] {
        work = group.all_reduce(&value, 1, DType::kFloat32, ReduceOp::kMax, {.async = true});
      }).join();
      group.barrier();
      require(work.done(), "a blocking call does not wait for what was started before");
      work.wait();
    }
  });
}

}  // namespace
}  // namespace lockstep::testing
