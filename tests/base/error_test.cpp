#include "lockstep/error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>

namespace lockstep {
namespace {

TEST(Error, CodesHaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(ErrorCode::kInternal); ++code)
    names.insert(to_string(static_cast<ErrorCode>(code)));
  EXPECT_EQ(names.size(), static_cast<size_t>(ErrorCode::kInternal) + 1);
  EXPECT_FALSE(names.contains("unknown"));
}

TEST(Error, IoErrorHasErrnosMeaning) {
  errno = ENOENT;
  const Error error = io_error("open data.bin");
  EXPECT_EQ(error.code(), ErrorCode::kIo);
  EXPECT_STREQ(error.what(), "open data.bin: No such file or directory");
}

TEST(Error, ExitStatusTellsUserFaultsApart) {
  EXPECT_EQ(exit_status(Error(ErrorCode::kInvalidArgument, "")), 2);
  EXPECT_EQ(exit_status(Error(ErrorCode::kCorrupt, "")), 2);
  EXPECT_EQ(exit_status(Error(ErrorCode::kNotFound, "")), 2);
  EXPECT_EQ(exit_status(Error(ErrorCode::kTimeout, "")), 1);
  EXPECT_EQ(exit_status(Error(ErrorCode::kInternal, "")), 1);
}

int run(int (*body)(int, char**), std::string* said) {
  ::testing::internal::CaptureStderr();
  const int status = run_main("tool", body, 0, nullptr);
  *said = ::testing::internal::GetCapturedStderr();
  return status;
}

TEST(RunMain, PassesTheBodysStatusOn) {
  std::string said;
  EXPECT_EQ(run([](int, char**) { return 7; }, &said), 7);
  EXPECT_EQ(said, "");
}

TEST(RunMain, PrintsOneLineForErrors) {
  std::string said;
  const auto ours = [](int, char**) -> int { throw Error(ErrorCode::kNotFound, "no x"); };
  EXPECT_EQ(run(ours, &said), 2);
  EXPECT_EQ(said, "tool: error: no x\n");
  const auto named = [](int, char**) -> int { throw Error(ErrorCode::kNotFound, "tool: no x"); };
  EXPECT_EQ(run(named, &said), 2);
  EXPECT_EQ(said, "tool: error: no x\n");
  const auto foreign = [](int, char**) -> int { throw std::runtime_error("odd"); };
  EXPECT_EQ(run(foreign, &said), 1);
  EXPECT_EQ(said, "tool: error: odd\n");
  const auto framed = [](int, char**) -> int {
    throw std::runtime_error("no memory\nException raised from f at g.cpp:1:\nframe #0: f");
  };
  EXPECT_EQ(run(framed, &said), 1);
  EXPECT_EQ(said, "tool: error: no memory\n");
  const auto number = [](int, char**) -> int { throw 7; };
  EXPECT_EQ(run(number, &said), 1);
  EXPECT_EQ(said, "tool: error: an exception that is no std::exception\n");
}

}  // namespace
}  // namespace lockstep
