#include "lockstep/world/reported_wait.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/error_of.h"

namespace lockstep {
namespace {

using namespace std::chrono_literals;

/// Waits of the given ends, in turn: a text is a timeout, an empty one a success.
struct Waits {
  std::vector<std::string> ends;
  std::vector<std::chrono::milliseconds> limits = {};
  std::vector<std::string> reports = {};

  std::string run(Deadline deadline) {
    return wait_and_report(
        deadline, 5s,
        [&](Deadline limit) -> std::string {
          limits.push_back(limit.left());
          const std::string& end = ends.at(limits.size() - 1);
          if (!end.empty()) throw Error(ErrorCode::kTimeout, end);
          return "done";
        },
        [&](const Error& error) { reports.emplace_back(error.what()); });
  }
};

TEST(ReportedWait, AShortOneIsNotReported) {
  Waits waits{{""}};
  EXPECT_EQ(waits.run(Deadline::after(1h)), "done");
  EXPECT_TRUE(waits.reports.empty());
  ASSERT_EQ(waits.limits.size(), 1U);
  EXPECT_LE(waits.limits[0], 5s);
}

TEST(ReportedWait, ALongOneIsReportedOnceAndGoesOn) {
  Waits waits{{"nobody", ""}};
  EXPECT_EQ(waits.run(Deadline::after(1h)), "done");
  EXPECT_EQ(waits.reports, std::vector<std::string>{"nobody"});
  ASSERT_EQ(waits.limits.size(), 2U);
  EXPECT_GT(waits.limits[1], 30min);
}

TEST(ReportedWait, ItsEndIsTheErrorOfTheLastWait) {
  Waits waits{{"nobody", "still nobody"}};
  EXPECT_STREQ(error_of([&] { waits.run(Deadline::after(1h)); }).what(), "still nobody");
  EXPECT_EQ(waits.reports.size(), 1U);
}

TEST(ReportedWait, OneWhoseTimeIsOverIsNotReported) {
  Waits waits{{"nobody"}};
  EXPECT_STREQ(error_of([&] { waits.run(Deadline::after(0s)); }).what(), "nobody");
  EXPECT_TRUE(waits.reports.empty());
}

TEST(ReportedWait, OtherErrorsEndIt) {
  int waits = 0;
  const auto refused = [&](Deadline) -> int {
    ++waits;
    throw Error(ErrorCode::kMismatch, "another job");
  };
  const auto error = error_of(
      [&] { wait_and_report(Deadline::after(1h), 5s, refused, [](const Error&) { FAIL(); }); });
  EXPECT_EQ(error.code(), ErrorCode::kMismatch);
  EXPECT_EQ(waits, 1);
}

}  // namespace
}  // namespace lockstep
