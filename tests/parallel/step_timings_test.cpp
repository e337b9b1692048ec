
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <array>
#include <atomic>
#include <thread>
#include <utility>

#include "lockstep/collectives.h"
#include "lockstep/distributed_data_parallel.h"
#include "lockstep/parallel/pass_clock.h"
#include "tests/support/ranks.h"

namespace lockstep {
namespace {

using testing::run_rank_threads;

TEST(PassClock, SharesBackwardBetweenHiddenAndExposedCommunication) {
  const PassClock::Time zero;
  const auto at = [&](int ms) { return zero + std::chrono::milliseconds(ms); };
  PassClock clock;
  for (int pass = 0; pass < 2; ++pass) {
    clock.begin(at(10));
    clock.gradient(at(13), false);
    clock.gradient(at(15), true);
    clock.gradient(at(18), true);
    clock.gradient(at(20), false);
    clock.computed(at(24));
    clock.end(at(31));
    EXPECT_EQ(clock.timings().backward, 21);
    EXPECT_EQ(clock.timings().comm_hidden, 5);
    EXPECT_EQ(clock.timings().comm_exposed, 7);
  }
  EXPECT_EQ(clock.computed_at(), at(24));
}

/// The plain average, which reports the time of its wait.
struct Announcer : CommHook {
  std::function<void(PassClock::Time)> waiting;

  std::function<void()> start(const GradientBucket& bucket, ProcessGroup& group) override {
    Work work = all_reduce(group, bucket.flat, ReduceOp::kAvg, {.async = true});
    return [this, work]() mutable {
      waiting(std::chrono::steady_clock::now());
      work.wait();
    };
  }
};

// Rank 1 begins a step's backward after it has been busy for longer than rank 0's whole backward.
// So rank 0 waits for rank 1, however slow the machine is.
TEST(StepTimings, NameTheRankThatOthersWaitFor) {
  using Clock = std::chrono::steady_clock;
  std::atomic<int64_t> steps_of_0 = 0;
  std::atomic<Clock::duration> busy_of_0{};  // at most
  std::array<StepTimings, 2> timings;
  run_rank_threads(2, [&](World world) {
    torch::nn::Linear net(4, 4);
    auto hook = std::make_shared<Announcer>();
    PassClock::Time last_wait = Clock::now();
    hook->waiting = [&](PassClock::Time now) {
      if (world.rank == 1) return;
      busy_of_0 = now - std::exchange(last_wait, now);
      ++steps_of_0;
    };
    auto model = DistributedDataParallel(net, ProcessGroup::create(world),
                                         {.comm_hook = hook, .measure_wait = true});
    auto end = Clock::now();
    for (int step = 1; step <= 3; ++step) {
      const auto y = model(torch::ones({1, 4})).sum();
      while (world.rank == 1 && (steps_of_0 < step || Clock::now() - end <= busy_of_0.load())) {
        std::this_thread::yield();
      }
      y.backward();
      end = Clock::now();
    }
    EXPECT_GT(model.timings().forward, 0);
    EXPECT_GE(model.timings().backward, model.timings().comm_exposed);
    EXPECT_EQ(model.timings().comm_exposed, model.comm_exposed_ms());
    timings[static_cast<size_t>(world.rank)] = model.timings();
  });
  EXPECT_GT(timings[0].slowest_wait, 0);
  EXPECT_EQ(timings[1].slowest_wait, 0);
}

}  // namespace
}  // namespace lockstep
