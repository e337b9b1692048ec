// The time of a step by parts, and the ranks that others wait for.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/train/trainer.h"
#include "tests/train/tiny.h"

namespace lockstep {
namespace {

/// The timings of every micro-step.
struct Timekeeper final : Callback {
  explicit Timekeeper(std::vector<StepTimings>& to) : all(to) {}
  void on_step(Trainer&, const StepReport& report) override { all.push_back(report.timings); }
  std::vector<StepTimings>& all;
};

TEST(Trainer, ReportsWhereTheTimeOfAnAveragedStepWent) {
  auto config = tiny_config();
  config.train.loader.batch_size = 2;
  config.train.gradient_accumulation_steps = 2;
  for (const bool measured : {false, true}) {
    config.parallel.measure_wait = measured;
    std::array<std::vector<StepTimings>, 2> of_rank;
    run_tiny(2, config, {.add_callbacks = [&](Trainer& trainer) {
               auto& list = of_rank[static_cast<size_t>(trainer.rank())];
               trainer.add(std::make_shared<Timekeeper>(list));
             }});
    ASSERT_EQ(of_rank[0].size(), of_rank[1].size());
    double longest_wait = 0;
    for (size_t i = 0; i < of_rank[0].size(); ++i) {
      const bool averaged = i % 2 == 1;  // the others only accumulate
      for (const auto& list : of_rank) {
        EXPECT_EQ(list[i].forward > 0, averaged) << i;
        EXPECT_EQ(list[i].backward > 0, averaged) << i;
        EXPECT_GE(list[i].backward, list[i].comm_exposed) << i;
      }
      const auto [least, most] =
          std::minmax(of_rank[0][i].slowest_wait, of_rank[1][i].slowest_wait);
      EXPECT_EQ(least, 0) << "of the slowest, step " << i;
      longest_wait = std::max(longest_wait, most);
    }
    EXPECT_EQ(longest_wait > 0, measured);
  }
}

TEST(Trainer, TheAveragingOfBuffersOverVirtualRanksIsTimeTogether) {
  for (const int64_t virtual_ranks : {0, 2}) {
    auto config = tiny_config();
    config.parallel.virtual_ranks = virtual_ranks;
    std::array<std::vector<StepTimings>, 2> of_rank;
    run_tiny(2, config, {.add_callbacks = [&](Trainer& trainer) {
               auto& list = of_rank[static_cast<size_t>(trainer.rank())];
               trainer.add(std::make_shared<Timekeeper>(list));
             }});
    for (const auto& list : of_rank) {
      for (const auto& timings : list) EXPECT_EQ(timings.buffer_average > 0, virtual_ranks > 0);
    }
  }
}

/// Delays one rank, by far more than the other's step takes on a busy machine; sums the waits of
/// all.
struct Straggler final : Callback {
  Straggler(int slow_rank, std::array<WaitSums, 2>& to, std::atomic<double>& fast)
      : slow(slow_rank), of_rank(to), fast_s(fast) {}
  void on_step(Trainer& trainer, const StepReport& report) override {
    of_rank[static_cast<size_t>(trainer.rank())].add(report.waits, report.step_s);
    if (trainer.rank() != slow) {
      fast_s = report.step_s - report.waits.waited_s;
    } else {
      std::this_thread::sleep_for(
          std::chrono::duration<double>(std::clamp(5 * fast_s.load(), 0.15, 5.0)));
    }
  }
  int slow;
  std::array<WaitSums, 2>& of_rank;
  std::atomic<double>& fast_s;
};

void expect_the_slow_rank_named(const Config& config) {
  for (const int slow : {0, 1}) {
    std::array<WaitSums, 2> of_rank;
    std::atomic<double> fast_s = 0;
    run_tiny(2, config, {.add_callbacks = [&](Trainer& trainer) {
               trainer.add(std::make_shared<Straggler>(slow, of_rank, fast_s));
             }});
    const WaitSums& fast = of_rank[static_cast<size_t>(1 - slow)];
    EXPECT_GT(fast.waited_s(), 2 * fast.moved_s()) << fast.text();
    EXPECT_EQ(fast.text().find(fmt::format("waiting for rank {}: ", slow)), 0U) << fast.text();
    const WaitSums& own = of_rank[static_cast<size_t>(slow)];
    EXPECT_LT(own.waited_s(), fast.waited_s() / 2) << own.text();
    EXPECT_NE(own.text().find("others waited for this rank: "), std::string::npos) << own.text();
  }
}

TEST(Trainer, WaitingForASlowRankIsNoCommunication) {
  expect_the_slow_rank_named(tiny_config());
}

TEST(Trainer, WaitingForASlowRankInBatchNormIsToldToo) {
  auto config = tiny_config();
  config.parallel.sync_bn = true;
  expect_the_slow_rank_named(config);
}

}  // namespace
}  // namespace lockstep
