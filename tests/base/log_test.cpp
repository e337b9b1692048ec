#include "lockstep/base/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

#include "lockstep/base/log_sink.h"

namespace lockstep {
namespace {

std::string logged(const std::function<void()>& body) {
  ::testing::internal::CaptureStderr();
  body();
  return ::testing::internal::GetCapturedStderr();
}

TEST(Log, LinesNameProcessAndLevel) {
  EXPECT_EQ(logged([] { log_info("hello"); }), "lockstep: hello\n");
  set_log_name("rank 3");
  EXPECT_EQ(logged([] { log_warn("careful"); }), "lockstep rank 3: warn: careful\n");
  EXPECT_EQ(logged([] { log_error("bad"); }), "lockstep rank 3: error: bad\n");
  set_log_name("");
}

TEST(Log, DebugIsOffByDefault) {
  EXPECT_EQ(logged([] { log_debug("detail"); }), "");
}

TEST(Log, ASinkTakesTheLines) {
  std::string taken;
  set_log_sink([&](const std::string& line) { taken += line; });
  EXPECT_EQ(logged([] { log_info("aside"); }), "");
  set_log_sink(nullptr);
  EXPECT_EQ(taken, "lockstep: aside\n");
  EXPECT_EQ(logged([] { log_info("again"); }), "lockstep: again\n");
}

// In a separate process without earlier log lines.
TEST(LogDeathTest, AnUnknownLevelIsSaid) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        ::setenv("LOCKSTEP_LOG_LEVEL", "warning", 1);
        log_info("spoken");
        ::_exit(0);
      },
      ::testing::ExitedWithCode(0),
      "LOCKSTEP_LOG_LEVEL is 'warning'; it can be debug, info, warn or error, and info is taken\n"
      "lockstep: spoken");
}

}  // namespace
}  // namespace lockstep
