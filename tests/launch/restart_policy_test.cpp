#include "lockstep/launch/job/restart_policy.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "lockstep/world/environment.h"

namespace lockstep {
namespace {

Failure failed_with(const ExitStatus& status, Steps steps = Steps::kUnknown) {
  Failure failure;
  failure.status = status;
  failure.steps = steps;
  return failure;
}

TEST(RestartPolicy, AsOftenAsAskedFor) {
  RestartRecord record;
  EXPECT_TRUE(after_failure(&record, 2, failed_with({0, SIGKILL}), 1).again);
  EXPECT_TRUE(after_failure(&record, 2, failed_with({1, 0}), 1).again);
  const auto last = after_failure(&record, 2, failed_with({1, 0}), 1);
  EXPECT_FALSE(last.again);
  EXPECT_EQ(last.why_not, "its 2 restarts are used up");
  EXPECT_EQ(record.restarts, 2);
}

TEST(RestartPolicy, NotAskedForIsNothingToSay) {
  RestartRecord record;
  const auto decision = after_failure(&record, 0, failed_with({2, 0}), 1);
  EXPECT_FALSE(decision.again);
  EXPECT_EQ(decision.why_not, "");
}

TEST(RestartPolicy, WhatCannotEndOtherwiseIsNotTriedAgain) {
  for (const int code : {2, 126, 127}) {
    RestartRecord record;
    const auto decision = after_failure(&record, 9, failed_with({code, 0}), 1);
    EXPECT_FALSE(decision.again);
    EXPECT_NE(decision.why_not.find(std::to_string(code)), std::string::npos) << decision.why_not;
    EXPECT_EQ(record.restarts, 0);
  }
  RestartRecord record;
  EXPECT_TRUE(after_failure(&record, 9, failed_with({0, 2}), 1).again)
      << "a signal is no exit code";
}

TEST(RestartPolicy, ACallThatWasGoodOnceIsNotAtFaultLater) {
  RestartRecord record;
  EXPECT_TRUE(after_failure(&record, 9, failed_with({2, 0}), 2).again);
  EXPECT_EQ(record.restarts, 1);
  EXPECT_TRUE(after_failure(&record, 9, failed_with({127, 0}), 2).again)
      << "its file server may be back in a moment";
  EXPECT_TRUE(after_failure(&record, 9, failed_with({126, 0}), 3).again);
  EXPECT_EQ(record.restarts, 3);
}

TEST(RestartPolicy, TwiceInARowBeforeTheFirstStepIsEnough) {
  RestartRecord record;
  EXPECT_TRUE(after_failure(&record, 9, failed_with({1, 0}, Steps::kNone), 1).again);
  EXPECT_TRUE(after_failure(&record, 9, failed_with({1, 0}), 1).again) << "not known to be early";
  const auto decision = after_failure(&record, 9, failed_with({1, 0}, Steps::kNone), 1);
  EXPECT_FALSE(decision.again);
  EXPECT_EQ(decision.why_not, "it failed twice in a row before its first step");
}

TEST(RestartPolicy, AJobThatMadeStepsOutlivesAHiccup) {
  RestartRecord record;
  EXPECT_TRUE(after_failure(&record, 1, failed_with({1, 0}, Steps::kSome), 1).again);
  EXPECT_EQ(restart_delay(record), std::chrono::seconds(0));
  std::chrono::seconds waited{0};
  for (int i = 1; i < 8; ++i) {
    EXPECT_TRUE(after_failure(&record, 1, failed_with({1, 0}, Steps::kNone), 2).again) << i;
    waited += restart_delay(record);
  }
  EXPECT_EQ(record.restarts, 1) << "starts that came to nothing cost none";
  EXPECT_GE(waited, std::chrono::seconds(60));
  const auto decision = after_failure(&record, 1, failed_with({1, 0}, Steps::kNone), 9);
  EXPECT_FALSE(decision.again);
  EXPECT_EQ(decision.why_not, "it failed 8 times in a row before a step");
}

TEST(RestartPolicy, PausesGrowUntilThereIsProgress) {
  RestartRecord record;
  for (const int seconds : {0, 1, 2, 4, 8, 16, 32, 60, 60}) {
    after_failure(&record, 99, failed_with({1, 0}), 1);
    EXPECT_EQ(restart_delay(record).count(), seconds);
  }
  Failure late = failed_with({1, 0});
  late.seconds = 61;
  after_failure(&record, 99, late, 1);
  EXPECT_EQ(restart_delay(record).count(), 0) << "it had worked for a minute";
  after_failure(&record, 99, failed_with({1, 0}), 1);
  EXPECT_EQ(restart_delay(record).count(), 1);
  after_failure(&record, 99, failed_with({1, 0}, Steps::kSome), 1);
  EXPECT_EQ(restart_delay(record).count(), 0);
}

TEST(RestartPolicy, WhoSaysNothingOfStepsIsTriedOn) {
  RestartRecord record;
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(after_failure(&record, 9, failed_with({1, 0}), 1).again);
}

TEST(LaterGeneration, IsKnownByAnAgentsCountOrTorchruns) {
  EXPECT_FALSE(is_later_generation({}));
  EXPECT_FALSE(is_later_generation({{"LOCKSTEP_GENERATION", "1"}}));
  EXPECT_FALSE(is_later_generation({{"TORCHELASTIC_RESTART_COUNT", "0"}}));
  EXPECT_FALSE(is_later_generation({{"LOCKSTEP_GENERATION", "x"}}));
  EXPECT_TRUE(
      is_later_generation({{"LOCKSTEP_GENERATION", "2"}, {"TORCHELASTIC_RESTART_COUNT", "0"}}));
  EXPECT_TRUE(is_later_generation({{"TORCHELASTIC_RESTART_COUNT", "1"}}));
}

}  // namespace
}  // namespace lockstep
