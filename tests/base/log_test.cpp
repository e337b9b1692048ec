#include "lockstep/base/log.h"

#include <gtest/gtest.h>

#include <functional>

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

}  // namespace
}  // namespace lockstep
