// `lockstep run --max_restarts` on one node, end to end.

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/launch/launched.h"
#include "tests/support/temp_folder.h"

namespace lockstep::testing {
namespace {

using namespace std::chrono_literals;

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> step_worker(const std::string& restarts, const std::string& steps,
                                     const std::string& code, const std::string& failures) {
  return {"run",
          "--nproc_per_node",
          "2",
          "--max_restarts",
          restarts,
          "--",
          built_program("restarted_worker"),
          steps,
          code,
          failures};
}

TEST(Restart, AllWorkersStartAgainAfterAFailureOfAnyKind) {
  const TempFolder folder;
  // Rank 1 fails once rank 0 has written its line; the failure then ends rank 0.
  const std::string log_of_rank_0 =
      (folder / "a/attempt_$TORCHELASTIC_RESTART_COUNT/0/stdout.log").string();
  const std::string script =
      "echo attempt $TORCHELASTIC_RESTART_COUNT of $TORCHELASTIC_MAX_RESTARTS;"
      "if [ $RANK = 1 ]; then until [ -s " +
      log_of_rank_0 +
      " ]; do sleep 0.01; done; case $TORCHELASTIC_RESTART_COUNT in"
      "  0) exit 3;; 1) kill -KILL $$;; esac; fi;"
      "if [ $TORCHELASTIC_RESTART_COUNT -lt 2 ]; then exec sleep 600; fi";
  Launched run(
      shell(2, script, {"--max_restarts", "3", "--log_dir", folder.path(), "--rdzv_id", "a"}));
  EXPECT_EQ(run.wait(), 0) << run.err();
  const auto said = lines_of(run.err());
  ASSERT_EQ(said.size(), 2U) << run.err();
  EXPECT_TRUE(has(said[0], ") failed: exit code 3 after ")) << said[0];
  EXPECT_TRUE(has(said[0], "; restart 1 of 3")) << said[0];
  EXPECT_TRUE(has(said[1], ") failed: SIGKILL after ")) << said[1];
  EXPECT_TRUE(has(said[1], "; restart 2 of 3")) << said[1];
  for (const char* attempt : {"0", "1", "2"}) {
    for (const char* rank : {"0", "1"}) {
      const auto log = folder / "a" / (std::string("attempt_") + attempt) / rank / "stdout.log";
      EXPECT_EQ(text_of(log), std::string("attempt ") + attempt + " of 3\n") << log;
    }
  }
  EXPECT_TRUE(run.wait_all_gone());
}

TEST(Restart, AProgramThatIsAwayForAMomentIsWaitedFor) {
  const TempFolder folder;
  const std::string program = folder / "worker";
  std::ofstream(program) << "#!/bin/sh\nif [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then mv " << program
                         << " " << program << ".away; exit 3; fi; echo back\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  Launched run({"run", "--nproc_per_node", "1", "--max_restarts", "5", "--", program});
  ASSERT_TRUE(run.wait_for("; restart 3 of 5")) << run.err();
  std::filesystem::rename(program + ".away", program);
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_TRUE(has(run.err(), "cannot execute")) << run.err();
  EXPECT_EQ(times_in(run.out(), "back"), 1) << run.out();
  EXPECT_TRUE(run.wait_all_gone());
}

TEST(Restart, AProgramThatStaysAwayUsesUpTheRestarts) {
  const TempFolder folder;
  const std::string program = folder / "worker";
  std::ofstream(program) << "#!/bin/sh\nrm -f " << program << "; exit 3\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  Launched run({"run", "--nproc_per_node", "1", "--max_restarts", "2", "--", program});
  EXPECT_EQ(run.wait(), 126) << run.err();
  EXPECT_TRUE(has(run.err(), "its 2 restarts are used up")) << run.err();
  EXPECT_TRUE(run.wait_all_gone());
}

TEST(Restart, ALogFolderThatIsAwayForAMomentIsWaitedFor) {
  const TempFolder folder;
  const std::string logs = folder / "logs";
  const std::string script = "if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then mv " + logs + " " +
                             logs + ".away; : >" + logs + "; exit 3; fi; echo back";
  Launched run(shell(1, script, {"--max_restarts", "5", "--log_dir", logs, "--rdzv_id", "a"}));
  ASSERT_TRUE(run.wait_for("; restart 3 of 5")) << run.err();
  std::filesystem::remove(logs);
  std::filesystem::rename(logs + ".away", logs);
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_TRUE(has(run.err(), "make folder " + logs)) << run.err();
  EXPECT_EQ(times_in(run.out(), "back"), 1) << run.out();
}

TEST(Restart, TheReportComesLastWhenRestartsAreUsedUp) {
  Launched run(shell(2, "echo broken >&2; exit 5", {"--max_restarts", "2"}));
  EXPECT_EQ(run.wait(), 5);
  EXPECT_TRUE(has(run.err(), "; restart 2 of 2")) << run.err();
  const auto said = lines_of(run.err());
  ASSERT_GE(said.size(), 3U);
  const auto* last = &said[said.size() - 3];
  EXPECT_EQ(last[0], "lockstep run: no further restart: its 2 restarts are used up") << run.err();
  EXPECT_TRUE(has(last[1], ") failed first: exit code 5")) << run.err();
  EXPECT_EQ(last[2], "  the end of its stderr is above");
}

TEST(Restart, AUsageErrorIsNotTriedAgain) {
  Launched run(shell(1, "exit 2", {"--max_restarts", "5"}));
  EXPECT_EQ(run.wait(), 2);
  EXPECT_FALSE(has(run.err(), "; restart ")) << run.err();
  EXPECT_TRUE(has(run.err(), "no further restart: exit code 2")) << run.err();
}

TEST(Restart, AUsageErrorOfALaterGenerationIsTriedAgain) {
  Launched run(shell(1, "case $TORCHELASTIC_RESTART_COUNT in 0) exit 1;; 1) exit 2;; esac",
                     {"--max_restarts", "5"}));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_TRUE(has(run.err(), "; restart 2 of 5")) << run.err();
}

TEST(Restart, GenerationsMeetInStoresOfTheirOwn) {
  Launched run(step_worker("3", "none", "1", "3"));
  EXPECT_EQ(run.wait(), 0) << run.err();
  for (const char* attempt : {"attempt 0", "attempt 1", "attempt 2", "attempt 3"}) {
    EXPECT_EQ(times_in(run.out(), attempt), 2) << run.out();
  }
}

TEST(Restart, AJobThatNeverComesToAStepIsGivenUp) {
  Launched early(step_worker("9", "early", "1", "9"));
  EXPECT_EQ(early.wait(), 1);
  EXPECT_EQ(times_in(early.err(), "; restart "), 1) << early.err();
  EXPECT_TRUE(has(early.err(), "no further restart: it failed twice in a row before its first"))
      << early.err();
  Launched later(step_worker("3", "step", "1", "3"));
  EXPECT_EQ(later.wait(), 0) << later.err();
  EXPECT_EQ(times_in(later.err(), "; restart "), 3) << later.err();
}

TEST(Restart, NobodyOfAnEarlierGenerationIsLeft) {
  const TempFolder folder;
  const std::string pids = folder / "pids";
  // One descendant stays in the group, one leaves it. The next generation checks that both are
  // gone.
  const std::string script =
      "if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then"
      "  sleep 600 & echo $! >> " +
      pids + "; setsid sleep 601 & echo $! >> " + pids +
      "; exit 1; fi;"
      "for pid in $(cat " +
      pids + "); do if kill -0 $pid; then exit 9; fi; done";
  Launched run(shell(1, script, {"--max_restarts", "1"}));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(lines_of(text_of(pids)).size(), 2U);
  EXPECT_TRUE(run.wait_all_gone());
}

TEST(Restart, ASignalEndsAJobThatFailsAndFails) {
  Launched run(shell(2, "kill -TERM $$; sleep 600", {"--max_restarts", "1000000"}));
  ASSERT_TRUE(run.wait_for("; restart 3 of"));
  run.send(SIGTERM);
  EXPECT_EQ(run.wait(), 143);
  EXPECT_TRUE(run.wait_all_gone());
}

TEST(Restart, KillingTheAgentInALaterGenerationLeavesNobody) {
  const std::string script =
      "if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then exit 1; fi;"
      "setsid sleep 600 & sleep 600 & echo ready; wait";
  Launched run(shell(2, script, {"--max_restarts", "1"}));
  ASSERT_TRUE(run.wait_for("ready", 2));
  run.send(SIGKILL);
  EXPECT_EQ(run.wait(), 137);
  EXPECT_TRUE(run.wait_all_gone());
}

}  // namespace
}  // namespace lockstep::testing
