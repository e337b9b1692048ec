// Hosts and containers that lack something.

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "lockstep/deadline.h"
#include "tests/launch/launched.h"
#include "tests/support/namespaces.h"
#include "tests/support/temp_folder.h"

namespace lockstep::testing {
namespace {

/// `words` of lockstep with `folder` as a disk of 64 KiB, in a separate mount namespace.
std::vector<std::string> on_a_small_disk(const std::string& folder,
                                         const std::vector<std::string>& words) {
  std::vector<std::string> all = {
      "/usr/bin/unshare",
      "--user",
      "--map-root-user",
      "--mount",
      "/bin/sh",
      "-c",
      "mount -t tmpfs -o size=64k tmpfs " + folder + " && exec \"$0\" \"$@\"",
      built_program("lockstep")};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

class FullDisk : public ::testing::Test {
 protected:
  void SetUp() override { LOCKSTEP_NEED_NAMESPACES(); }
  const TempFolder folder_;
  const TempFolder disk_;
  const std::string go_ = folder_ / "go";
  const std::string lines_ = "yes 'a line that takes room' | head -n 10000; ";
};

TEST_F(FullDisk, LinesThatRanksCannotWriteToTheirFilesAreSaidOnceWhileTheJobRunsAsRoot) {
  Launched run(on_a_small_disk(disk_.path(),
                               shell(2, lines_ + "until [ -e " + go_ + " ]; do sleep 0.05; done",
                                     {"-r", "3", "--log_dir", disk_.path(), "--rdzv_id", "one"})));
  EXPECT_TRUE(run.wait_for(disk_ / "one/attempt_0: No space left on device")) << run.err();
  std::ofstream(go_).put('\n');
  EXPECT_EQ(run.wait(), 0);
  EXPECT_TRUE(has(run.err(), "and the job goes on")) << run.err();
  EXPECT_EQ(times_in(run.err(), "No space left"), 1) << run.err();
}

TEST_F(FullDisk, LinesOfAJobThatIsSoonOverAreMissedAsWellAsRoot) {
  Launched run(on_a_small_disk(disk_.path(),
                               shell(2, lines_ + "true", {"-r", "3", "--log_dir", disk_.path()})));
  EXPECT_EQ(run.wait(), 0);
  EXPECT_EQ(times_in(run.err(), "No space left on device"), 1) << run.err();
}

TEST_F(FullDisk, NothingIsSaidWhereThereIsRoomAsRoot) {
  Launched run(
      on_a_small_disk(disk_.path(), shell(2, "echo line", {"-r", "3", "--log_dir", disk_.path()})));
  EXPECT_EQ(run.wait(), 0);
  EXPECT_EQ(run.err(), "");
}

// AddressSanitizer itself reads the stack's end from /proc, and reports false faults without it.
#ifndef __SANITIZE_ADDRESS__
/// `words` of lockstep with an empty /proc, as in a chroot.
std::vector<std::string> without_proc(const std::vector<std::string>& words) {
  std::vector<std::string> all = {"/usr/bin/unshare",
                                  "--user",
                                  "--map-root-user",
                                  "--mount",
                                  "/bin/sh",
                                  "-c",
                                  "mount -t tmpfs none /proc && exec \"$0\" \"$@\"",
                                  built_program("lockstep")};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

TEST(NoProc, IsSaidInOneLineAsRoot) {
  LOCKSTEP_NEED_NAMESPACES();
  const std::string line =
      "error: /proc is needed and is not mounted here; 'mount -t proc proc /proc' does that\n";
  Launched run(without_proc({"run", "-n", "2", "--", built_program("world_worker")}));
  EXPECT_EQ(run.wait(), 1);
  EXPECT_TRUE(has(run.err(), "world_worker: " + line)) << run.err();
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"doctor"}, {"run", "-H", "localhost:2", "--", "true"}}) {
    Launched verb(without_proc(words));
    EXPECT_EQ(verb.wait(), 1);
    EXPECT_EQ(verb.out() + verb.err(), "lockstep " + words[0] + ": " + line);
  }
}

TEST(NoProc, JobsAreListedAllTheSameAsRoot) {
  LOCKSTEP_NEED_NAMESPACES();
  const TempFolder folder;
  const std::map<std::string, std::string> list = {{"LOCKSTEP_JOBS_DIR", folder / "jobs"}};
  Launched run(shell(1, "exec sleep 600", {"--rdzv_id", "one"}), list);
  const std::string row = "\none  " + std::to_string(run.pid()) + " ";
  const auto deadline = Deadline::after(std::chrono::seconds(60));
  std::string out;
  while (!has(out, row) && !deadline.passed()) {
    Launched ps(without_proc({"ps"}), list);
    EXPECT_EQ(ps.wait(), 0);
    EXPECT_EQ(
        ps.err(),
        "lockstep: warn: jobs that other launchers started are not known: /proc is needed and "
        "is not mounted here; 'mount -t proc proc /proc' does that\n");
    out = ps.out();
  }
  EXPECT_TRUE(has(out, row)) << out;
  Launched stop(without_proc({"stop", "one"}), list);
  EXPECT_EQ(stop.wait(), 2) << stop.out() << "its number may be another process's";
}

TEST(NoProc, ProgramsOfOthersRunAllTheSameAsRoot) {
  LOCKSTEP_NEED_NAMESPACES();
  Launched run(without_proc(shell(2, "echo $RANK")));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_TRUE(has(run.out(), "[1] 1\n")) << run.out();
}
#endif

}  // namespace
}  // namespace lockstep::testing
