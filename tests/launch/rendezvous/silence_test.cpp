// How long agents may be silent.

#include "lockstep/launch/rendezvous/silence.h"

#include <gtest/gtest.h>

namespace lockstep::testing {
namespace {

using namespace std::chrono_literals;

RunOptions options_of(int min, int max, int restarts) {
  RunOptions options;
  options.min_nodes = min;
  options.num_nodes = max;
  options.max_restarts = restarts;
  return options;
}

TEST(Silence, AJobThatCannotChangeIsPatient) {
  EXPECT_GE(allowed_silence(options_of(2, 2, 0), false).limit, 30s);
  EXPECT_GE(allowed_silence(options_of(2, 2, 0), true).limit, 30s);
  EXPECT_EQ(allowed_silence(options_of(2, 2, 0), false).interval, 200ms);
}

TEST(Silence, OneThatCanGoOnReactsFast) {
  EXPECT_EQ(allowed_silence(options_of(1, 2, 0), false).limit, 2s);
  EXPECT_EQ(allowed_silence(options_of(2, 2, 1), false).limit, 2s);
}

TEST(Silence, ALeaseLastsTenSecondsAndIsRenewedThreeTimesInIt) {
  const Silence silence = allowed_silence(options_of(1, 2, 0), true);
  EXPECT_EQ(silence.limit, 10s);
  EXPECT_GE(silence.interval, silence.limit / 4);
  EXPECT_LE(silence.interval, silence.limit / 3);
}

TEST(Silence, WhatIsAskedForIsDone) {
  RunOptions options = options_of(2, 2, 0);
  options.silence_given = true;
  options.heartbeat_interval = 100ms;
  options.heartbeat_attempts = 15;
  EXPECT_EQ(allowed_silence(options, false).limit, 1500ms);
  EXPECT_EQ(allowed_silence(options, true).limit, 1500ms);
  EXPECT_EQ(allowed_silence(options, true).interval, 500ms);
}

TEST(Silence, VeryManyAgentsSendHeartbeatsMoreSeldom) {
  const Silence silence = allowed_silence(options_of(1, 20000, 0), false, 10000);
  EXPECT_EQ(silence.interval, 1s);
  EXPECT_EQ(silence.limit, 10s);
}

}  // namespace
}  // namespace lockstep::testing
