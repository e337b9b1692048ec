#include "lockstep/parallel/step_timings.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <thread>

#include "lockstep/parallel/distributed_data_parallel.h"
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

TEST(StepTimings, NameTheRankThatOthersWaitFor) {
  run_rank_threads(2, [](World world) {
    torch::nn::Linear net(4, 4);
    auto model = DistributedDataParallel(net, ProcessGroup::create(world), {.measure_wait = true});
    for (int step = 0; step < 3; ++step) {
      const auto y = model(torch::ones({1, 4})).sum();
      if (world.rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(60));
      y.backward();
    }
    const StepTimings timings = model.timings();
    EXPECT_GT(timings.forward, 0);
    EXPECT_GE(timings.backward, timings.comm_exposed);
    EXPECT_EQ(timings.comm_exposed, model.comm_exposed_ms());
    EXPECT_EQ(timings.slowest_wait > 20, world.rank == 0) << timings.slowest_wait;
  });
}

}  // namespace
}  // namespace lockstep
