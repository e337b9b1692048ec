// Reports of a rank without an agent, read from its memory.

#include "lockstep/progress.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string_view>
#include <thread>

#include "lockstep/base/clock.h"
#include "lockstep/world/step_memory.h"

namespace lockstep {
namespace {

/// A child makes memory of its own. Its file descriptors run out, and are there again later.
int slots_of_child_without_descriptors() {
  rlimit descriptors{};
  ::getrlimit(RLIMIT_NOFILE, &descriptors);
  const rlimit none = {0, descriptors.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &none);
  const bool first = slot_for_reports() != nullptr;
  ::setrlimit(RLIMIT_NOFILE, &descriptors);
  const bool second = slot_for_reports() != nullptr;
  return (first ? 1 : 0) + (second ? 2 : 0);
}

TEST(ReportedWork, OfTwoThreadsTheFirstIsShown) {
  report_step({.step = 1});
  const StepSlot* const slot = slot_for_reports();
  ASSERT_NE(slot, nullptr);
  auto first = std::make_unique<ReportedWork>("evaluation");
  std::unique_ptr<ReportedWork> second;
  std::thread([&] { second = std::make_unique<ReportedWork>("upload"); }).join();
  EXPECT_STREQ(slot->work, "evaluation");
  first.reset();
  EXPECT_STREQ(slot->work, "");
  const int64_t stepped_ns = slot->stepped_ns;
  std::thread([&] { second.reset(); }).join();
  EXPECT_EQ(slot->stepped_ns, stepped_ns) << "the time of both was left out already";
}

// As of a program that was killed within its work, and ran in the same worker before.
TEST(ReportedWork, WorkOfAnotherProcessGivesWay) {
  report_step({.step = 1});
  StepSlot* const slot = slot_for_reports();
  ASSERT_NE(slot, nullptr);
  const auto leave = [&] {
    slot->work[std::string_view("left").copy(slot->work, sizeof slot->work - 1)] = 0;
    slot->work_ns = 1;
  };
  leave();
  {
    const ReportedWork own("upload");
    EXPECT_STREQ(slot->work, "upload");
    expect_steps();
    EXPECT_STREQ(slot->work, "upload") << "it goes on";
  }
  EXPECT_STREQ(slot->work, "");
  leave();
  expect_steps();
  EXPECT_STREQ(slot->work, "");
}

// A report is lost while another thread writes one.
TEST(ReportedWork, OneWhoseBeginIsLostHasNoEnd) {
  report_step({.step = 1});
  StepSlot* const slot = slot_for_reports();
  ASSERT_NE(slot, nullptr);
  { const ReportedWork earlier("evaluation"); }
  const int64_t stepped_ns = slot->stepped_ns;
  ++slot->version;
  auto lost = std::make_unique<ReportedWork>("upload");
  ++slot->version;
  EXPECT_STREQ(slot->work, "");
  lost.reset();
  EXPECT_EQ(slot->stepped_ns, stepped_ns);
}

TEST(ReportedWork, TheEndWaitsForAnotherThreadsReport) {
  report_step({.step = 1});
  StepSlot* const slot = slot_for_reports();
  ASSERT_NE(slot, nullptr);
  auto work = std::make_unique<ReportedWork>("evaluation");
  ++slot->version;
  std::atomic<bool> ends = false;
  std::thread ending([&] {
    ends = true;
    work.reset();
  });
  while (!ends) std::this_thread::yield();
  ++slot->version;
  ending.join();
  EXPECT_STREQ(slot->work, "");
}

TEST(ReportedWork, AStepReportedMeanwhileLeavesNoTimeToComeOff) {
  report_step({.step = 1});
  const StepSlot* const slot = slot_for_reports();
  ASSERT_NE(slot, nullptr);
  auto work = std::make_unique<ReportedWork>("evaluation");
  std::thread([] { report_step({.step = 2}); }).join();
  work.reset();
  EXPECT_LE(slot->stepped_ns, monotonic_ns());
}

TEST(ReportedSteps, BeginAnewWithARestart) {
  StepSlot* const slot = slot_for_reports();
  ASSERT_NE(slot, nullptr);
  const auto begun_by = [&](int64_t step) {
    report_step({.step = step});
    return slot->begun_step;
  };
  expect_steps();
  EXPECT_EQ(begun_by(40), 40);
  EXPECT_EQ(begun_by(41), 40);
  EXPECT_EQ(begun_by(30), 30) << "a restart that announced nothing";
  expect_steps();
  EXPECT_EQ(begun_by(50), 50);
}

TEST(OwnSteps, AFailureToMakeThemIsRemembered) {
  ASSERT_NE(slot_for_reports(), nullptr);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(slots_of_child_without_descriptors());
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << "1: it had memory at once, 2: it tried again";
}

}  // namespace
}  // namespace lockstep
