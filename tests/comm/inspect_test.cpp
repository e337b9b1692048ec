// `lockstep inspect` of a job in which rank 1 omits a collective: during the hang, and after the
// job was killed.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>

#include "lockstep/deadline.h"
#include "tests/launch/launched.h"
#include "tests/support/temp_folder.h"

namespace lockstep::testing {
namespace {

/// Output of `lockstep inspect TARGET` once it contains `part` and `inside` ranks are in an
/// operation: each needs a moment to get there.
std::string inspected(const std::string& target, const std::string& part, int inside) {
  std::string out;
  const auto deadline = Deadline::after(std::chrono::seconds(60));
  while (!deadline.passed()) {
    Launched inspect({"inspect", target});
    inspect.wait();
    out = inspect.out();
    const auto lines = lines_of(out);
    const auto found = std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
      return has(line, "inside for");
    });
    if (has(out, part) && found == inside) break;
  }
  return out;
}

TEST(Inspect, NamesTheRankThatHoldsUpTheOthersAliveAndDead) {
  const TempFolder logs;
  Launched run({"run", "--nproc_per_node", "3", "--log_dir", logs.path().string(), "--",
                built_program("group_holder"), "skip"});
  ASSERT_TRUE(run.wait_for("holding", 3)) << run.err();
  const std::string alive = inspected(std::to_string(run.pid()), "1 behind, sleeping", 2);
  const auto lines = lines_of(alive);
  ASSERT_EQ(lines.size(), 6u) << alive;
  EXPECT_TRUE(lines[5].starts_with("stack of rank 1: pause < ")) << alive;
  EXPECT_TRUE(has(lines[2], "barrier #3  ") && has(lines[2], "inside for")) << alive;
  EXPECT_TRUE(has(lines[2], "group_holder.cpp:43")) << alive;
  EXPECT_FALSE(has(lines[2], "<-")) << alive;
  EXPECT_TRUE(has(lines[3], "all_reduce #2 (float32, 1.0 MiB)") &&
              has(lines[3], "<- 1 behind, sleeping"))
      << alive;

  // Given one rank's process: only that rank.
  const std::string words = lines[3].substr(0, lines[3].find("all_reduce"));
  const std::string pid = words.substr(words.find_first_not_of(' ', words.find('1') + 1));
  const std::string one = inspected(pid.substr(0, pid.find(' ')), "no record of ranks 0, 2", 0);
  EXPECT_EQ(lines_of(one).size(), 4u) << one;

  ASSERT_EQ(::kill(run.pid(), SIGKILL), 0);  // and with the agent all of its workers
  run.wait();
  ASSERT_TRUE(run.wait_all_gone());
  const auto folder = *std::filesystem::directory_iterator(logs.path());
  const std::string dead = inspected((folder.path() / "attempt_0").string(), "dead, 1 behind", 2);
  EXPECT_TRUE(has(dead, "barrier #3") && has(dead, "dead, 1 behind")) << dead;
  EXPECT_TRUE(has(dead, "group_holder.cpp:43") && has(dead, "group_holder.cpp:38")) << dead;

  // Given the folder of --log_dir: the latest attempt, and a note on the others.
  const auto older = logs.path() / "older" / "attempt_7";
  std::filesystem::create_directories(older);
  std::filesystem::copy(folder.path() / "attempt_0", older);
  const auto written = std::filesystem::last_write_time(folder.path() / "attempt_0");
  std::filesystem::last_write_time(older, written - std::chrono::hours(1));
  Launched newest({"inspect", logs.path().string()});
  EXPECT_EQ(newest.wait(), 0);
  EXPECT_EQ(newest.out().substr(0, newest.out().find("inside for")),
            dead.substr(0, dead.find("inside for")));
  EXPECT_TRUE(has(newest.err(), "not shown: " + older.string())) << newest.err();

  std::filesystem::resize_file(folder.path() / "attempt_0" / "rank_1.flight", 1000);
  Launched rest({"inspect", (folder.path() / "attempt_0").string()});
  EXPECT_EQ(rest.wait(), 0);
  EXPECT_TRUE(has(rest.err(), "rank_1.flight: 1000 bytes")) << rest.err();
  EXPECT_TRUE(has(rest.out(), "barrier #3") && has(rest.out(), "no record of rank")) << rest.out();
}

TEST(Inspect, OfACalmRunItAccusesNobody) {
  Launched run({"run", "--nproc_per_node", "3", "--", built_program("group_holder"), "loop"});
  ASSERT_TRUE(run.wait_for("holding", 3)) << run.err();
  for (int look = 0; look < 50; ++look) {
    Launched inspect({"inspect", std::to_string(run.pid())});
    ASSERT_EQ(inspect.wait(), 0) << inspect.err();
    ASSERT_TRUE(has(inspect.out(), "barrier #")) << inspect.out();
    ASSERT_FALSE(has(inspect.out(), "<-")) << inspect.out();
  }
  ASSERT_EQ(::kill(run.pid(), SIGKILL), 0);
  run.wait();
  ASSERT_TRUE(run.wait_all_gone());
}

TEST(Inspect, AJobThatEndedWellIsDoneAndNotDead) {
  const TempFolder logs;
  Launched run({"run", "--nproc_per_node", "2", "--log_dir", logs.path().string(), "--",
                built_program("group_holder"), "end"});
  ASSERT_EQ(run.wait(), 0) << run.err();
  Launched inspect({"inspect", logs.path().string()});
  EXPECT_EQ(inspect.wait(), 0) << inspect.err();
  EXPECT_EQ(times_in(inspect.out(), " ago, ended\n"), 2) << inspect.out();
  EXPECT_FALSE(has(inspect.out(), "dead")) << inspect.out();
}

TEST(Inspect, RefusesWhatIsNoJob) {
  const TempFolder empty;
  for (const auto& [target, why] :
       std::vector<std::pair<std::string, std::string>>{{"nonsense", "neither a folder"},
                                                        {"999999999", "no process 999999999"},
                                                        {empty.path().string(), "no rank there"}}) {
    Launched inspect({"inspect", target});
    EXPECT_EQ(inspect.wait(), 2) << target;
    EXPECT_TRUE(has(inspect.err(), why)) << inspect.err();
  }
  Launched usage({"inspect"});
  EXPECT_EQ(usage.wait(), 2);
}

}  // namespace
}  // namespace lockstep::testing
