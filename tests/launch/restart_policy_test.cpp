#include "lockstep/launch/agent/restart_policy.h"

#include <gtest/gtest.h>
#include <signal.h>

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
  EXPECT_TRUE(after_failure(&record, 2, failed_with({0, SIGKILL})).again);
  EXPECT_TRUE(after_failure(&record, 2, failed_with({1, 0})).again);
  const auto last = after_failure(&record, 2, failed_with({1, 0}));
  EXPECT_FALSE(last.again);
  EXPECT_EQ(last.why_not, "its 2 restarts are used up");
  EXPECT_EQ(record.restarts, 2);
}

TEST(RestartPolicy, NotAskedForIsNothingToSay) {
  RestartRecord record;
  const auto decision = after_failure(&record, 0, failed_with({2, 0}));
  EXPECT_FALSE(decision.again);
  EXPECT_EQ(decision.why_not, "");
}

TEST(RestartPolicy, WhatCannotEndOtherwiseIsNotTriedAgain) {
  for (const int code : {2, 126, 127}) {
    RestartRecord record;
    const auto decision = after_failure(&record, 9, failed_with({code, 0}));
    EXPECT_FALSE(decision.again);
    EXPECT_NE(decision.why_not.find(std::to_string(code)), std::string::npos) << decision.why_not;
    EXPECT_EQ(record.restarts, 0);
  }
  RestartRecord record;
  EXPECT_TRUE(after_failure(&record, 9, failed_with({0, 2})).again) << "a signal is no exit code";
}

TEST(RestartPolicy, TwiceInARowBeforeTheFirstStepIsEnough) {
  RestartRecord record;
  EXPECT_TRUE(after_failure(&record, 9, failed_with({1, 0}, Steps::kNone)).again);
  EXPECT_TRUE(after_failure(&record, 9, failed_with({1, 0}, Steps::kSome)).again);
  EXPECT_TRUE(after_failure(&record, 9, failed_with({1, 0}, Steps::kNone)).again);
  EXPECT_TRUE(after_failure(&record, 9, failed_with({1, 0})).again) << "not known to be early";
  const auto decision = after_failure(&record, 9, failed_with({1, 0}, Steps::kNone));
  EXPECT_FALSE(decision.again);
  EXPECT_EQ(decision.why_not, "it failed twice in a row before its first step");
}

TEST(RestartPolicy, WhoSaysNothingOfStepsIsTriedOn) {
  RestartRecord record;
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(after_failure(&record, 9, failed_with({1, 0})).again);
}

}  // namespace
}  // namespace lockstep
