#include "lockstep/train/schedule/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace lockstep {
namespace {

constexpr int64_t kStepsPerEpoch = 10;

SchedulerConfig make(const std::string& name, double warmup_epochs = 0) {
  SchedulerConfig config;
  config.scheduler = name;
  config.lr = 0.1;
  config.num_epochs = 10;
  config.warmup_epochs = warmup_epochs;
  return config;
}

double at(const SchedulerConfig& config, int64_t step) {
  return learning_rate(config, step, kStepsPerEpoch);
}

TEST(Schedule, ConstantAfterLinearWarmup) {
  auto config = make("constant", 2);
  EXPECT_DOUBLE_EQ(at(config, 0), 0);
  EXPECT_DOUBLE_EQ(at(config, 5), 0.1 * 0.25);
  EXPECT_DOUBLE_EQ(at(config, 19), 0.1 * 0.95);
  EXPECT_DOUBLE_EQ(at(config, 20), 0.1);
  config.warmup_factor = 0.5;
  EXPECT_DOUBLE_EQ(at(config, 0), 0.05);
  EXPECT_DOUBLE_EQ(at(config, 10), 0.075);
}

TEST(Schedule, StairsChangeOnceAnEpoch) {
  auto config = make("exponential_decay", 2);
  config.lr_epoch_stair = true;
  EXPECT_DOUBLE_EQ(at(config, 9), 0);
  EXPECT_DOUBLE_EQ(at(config, 19), 0.05);
  EXPECT_DOUBLE_EQ(at(config, 30), 0.09);
  EXPECT_DOUBLE_EQ(at(config, 39), 0.09);
}

TEST(Schedule, CosineFallsToMinimumAndStays) {
  auto config = make("cosine_decay", 1);
  config.min_lr = 0.01;
  config.decay_epochs = 8;
  EXPECT_DOUBLE_EQ(at(config, 10), 0.1);
  EXPECT_DOUBLE_EQ(at(config, 10 + 40), 0.055);
  EXPECT_NEAR(at(config, 10 + 20), 0.01 + 0.045 * (1 + std::cos(std::numbers::pi / 4)), 1e-15);
  EXPECT_DOUBLE_EQ(at(config, 95), 0.01);
  config.scheduler = "warmup_cosine_decay";
  EXPECT_DOUBLE_EQ(at(config, 10 + 40), 0.055);
}

TEST(Schedule, ACosineThatIsLongerThanTheRunIsNoted) {
  auto config = make("cosine_decay", 2);
  config.decay_epochs = 8;
  EXPECT_EQ(schedule_note(config), "");
  config.num_cycles = 2;
  EXPECT_EQ(schedule_note(config),
            "scheduler: warm-up and decay take 18 epochs, num_epochs is 10: the learning rate does "
            "not come down to min_lr; reduce decay_epochs");
  config.scheduler = "polynomial_decay";
  EXPECT_EQ(schedule_note(config), "");
}

TEST(Schedule, AWarmUpOfTheWholeRunIsNoted) {
  auto config = make("constant", 9.5);
  EXPECT_EQ(schedule_note(config), "");
  config.warmup_epochs = 10;
  EXPECT_EQ(schedule_note(config),
            "scheduler: warm-up takes 10 epochs, num_epochs is 10: the learning rate never reaches "
            "lr; reduce warmup_epochs");
  config.warmup_factor = 1;
  EXPECT_EQ(schedule_note(config), "");
  config = make("cosine_decay", 12);
  EXPECT_NE(schedule_note(config).find("warm-up takes 12 epochs"), std::string::npos);
  config.scheduler = "one_cycle";
  EXPECT_EQ(schedule_note(config), "") << "it has a warm-up of its own";
}

TEST(Schedule, CosineRestartsLower) {
  auto config = make("cosine_decay");
  config.min_lr = 0;
  config.decay_epochs = 4;
  config.num_cycles = 2;
  config.cycle_decay = 0.5;
  EXPECT_DOUBLE_EQ(at(config, 40), 0.05);
  EXPECT_DOUBLE_EQ(at(config, 60), 0.025);
  EXPECT_DOUBLE_EQ(at(config, 80), 0);
}

// Epochs 0, 2 and 6 begin the cycles, as torch.optim.lr_scheduler.CosineAnnealingWarmRestarts with
// T_0=2, T_mult=2 has it.
TEST(Schedule, CosineRestartsWithLongerCycles) {
  auto config = make("cosine_decay");
  config.min_lr = 0;
  config.decay_epochs = 2;
  config.num_cycles = 2;
  config.cycle_factor = 2;
  EXPECT_DOUBLE_EQ(at(config, 0), 0.1);
  EXPECT_DOUBLE_EQ(at(config, 10), 0.05);
  EXPECT_DOUBLE_EQ(at(config, 20), 0.1);
  EXPECT_DOUBLE_EQ(at(config, 40), 0.05);
  EXPECT_DOUBLE_EQ(at(config, 60), 0) << "the cycles are over";
  EXPECT_EQ(schedule_note(config), "");
  config.num_cycles = 3;
  EXPECT_NE(schedule_note(config).find("take 14 epochs"), std::string::npos);
}

TEST(Schedule, PlateauReducesDownToTheLowestRate) {
  auto config = make("reduce_on_plateau", 1);
  config.decay_rate = 0.1;
  config.min_lr = 0.002;
  EXPECT_DOUBLE_EQ(learning_rate(config, 5, kStepsPerEpoch, 1), 0.05) << "warm-up";
  EXPECT_DOUBLE_EQ(learning_rate(config, 50, kStepsPerEpoch, 0), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(config, 50, kStepsPerEpoch, 1), 0.01);
  EXPECT_DOUBLE_EQ(learning_rate(config, 50, kStepsPerEpoch, 2), 0.002);
}

TEST(Schedule, ARegisteredOneFollowsWarmUp) {
  auto config = make("own", 1);
  config.own = OwnPart<Schedule>{"own", [](const SchedulePoint& point) {
                                   return point.lr * point.epoch + point.step +
                                          static_cast<double>(point.num_epochs);
                                 }};
  EXPECT_DOUBLE_EQ(at(config, 5), 0.05);
  EXPECT_DOUBLE_EQ(at(config, 25), 0.1 * 2.5 + 25 + 10);
}

TEST(Schedule, PolynomialEndsNearZero) {
  const auto config = make("polynomial_decay", 2);
  EXPECT_DOUBLE_EQ(at(config, 20), 0.1);
  EXPECT_DOUBLE_EQ(at(config, 60), 0.1 * std::pow(0.5, 0.9));
  EXPECT_DOUBLE_EQ(at(config, 99), 0.1 * std::pow(1 - 7.9 / 8, 0.9));
  EXPECT_DOUBLE_EQ(at(config, 1000), at(config, 99));
}

TEST(Schedule, ExponentialCountsFractionsOfEpochs) {
  EXPECT_DOUBLE_EQ(at(make("exponential_decay"), 25), 0.1 * std::pow(0.9, 2.5));
}

TEST(Schedule, StepsAndMilestonesCountWholeEpochs) {
  auto step = make("step_decay", 1);
  step.decay_epochs = 3;
  step.decay_rate = 0.1;
  EXPECT_DOUBLE_EQ(at(step, 39), 0.1);
  EXPECT_DOUBLE_EQ(at(step, 40), 0.1 * 0.1);
  EXPECT_DOUBLE_EQ(at(step, 70), 0.1 * std::pow(0.1, 2));
  auto multi = make("multi_step_decay", 1);
  multi.milestones = {2, 5};
  multi.decay_rate = 0.5;
  EXPECT_DOUBLE_EQ(at(multi, 29), 0.1);
  EXPECT_DOUBLE_EQ(at(multi, 30), 0.05);
  EXPECT_DOUBLE_EQ(at(multi, 60), 0.025);
}

// Expected values: torch.optim.lr_scheduler.OneCycleLR(SGD([p], 0.1), 0.1, total_steps=...,
// pct_start=..., div_factor=..., final_div_factor=..., cycle_momentum=False), torch 1.13.1.
TEST(Schedule, OneCycleIsPyTorchs) {
  const std::vector<double> defaults = {0.0040000000000000036,
                                        0.013167184270002533,
                                        0.037167184270002526,
                                        0.06683281572999747,
                                        0.09083281572999748,
                                        0.1,
                                        0.09874640062350874,
                                        0.09504846320134738,
                                        0.089091617757105,
                                        0.0811745653949763,
                                        0.07169430017913009,
                                        0.06112620219362893,
                                        0.0500002,
                                        0.03887419780637107,
                                        0.028306099820869922,
                                        0.0188258346050237,
                                        0.010908782242895003,
                                        0.004951936798652629,
                                        0.0012539993764912555,
                                        4e-07};
  auto config = make("one_cycle", 3);  // its own rise replaces warm-up
  config.num_epochs = 2;
  for (size_t i = 0; i < defaults.size(); ++i) {
    EXPECT_NEAR(at(config, static_cast<int64_t>(i)), defaults[i], 1e-16 + 1e-13 * defaults[i]) << i;
  }
  const std::vector<double> other = {0.009999999999999995,
                                     0.041094235253127366,
                                     0.09140576474687263,
                                     0.09505339495172584,
                                     0.06116492065111791,
                                     0.018906684397156263,
                                     0.0001};
  config.num_epochs = 1;
  config.pct_start = 0.5;
  config.div_factor = 10;
  config.final_div_factor = 100;
  for (size_t i = 0; i < other.size(); ++i) {
    EXPECT_NEAR(learning_rate(config, static_cast<int64_t>(i), 7), other[i], 1e-14) << i;
  }
}

TEST(Schedule, OneCycleOfFewStepsIsFinite) {
  auto config = make("one_cycle");
  config.num_epochs = 1;
  for (int64_t steps = 1; steps < 8; ++steps) {
    for (int64_t i = 0; i < steps; ++i) {
      const double lr = learning_rate(config, i, steps);
      EXPECT_TRUE(std::isfinite(lr) && lr > 0 && lr <= 0.1) << i << " of " << steps << ": " << lr;
    }
  }
}

}  // namespace
}  // namespace lockstep
