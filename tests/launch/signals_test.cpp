// Signals from a shell and its user to lockstep run: end to end.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "lockstep/deadline.h"
#include "tests/launch/launched.h"
#include "tests/support/temp_folder.h"

namespace lockstep::testing {
namespace {

using namespace std::chrono_literals;
using Words = std::vector<std::string>;

bool in_a_while(const std::function<bool()>& done) {
  const auto deadline = Deadline::after(60s);
  while (!done() && !deadline.passed()) std::this_thread::sleep_for(10ms);
  return done();
}

bool stands_still(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  std::getline(file, stat);  // fails, but throws nothing, if the process ends meanwhile
  return stat.find(") T ") != std::string::npos;
}

bool is_pending(pid_t pid, int signal) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("ShdPnd:", 0) != 0) continue;
    return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) != 0;
  }
  return false;
}

long stopped_of(const Launched& run) {
  const auto alive = run.alive();
  return std::count_if(alive.begin(), alive.end(), stands_still);
}

class Stopped : public ::testing::Test {
 protected:
  std::map<std::string, std::string> variables() const {
    return {{"LOCKSTEP_JOBS_DIR", folder_ / "jobs"}};
  }
  std::string said(const Words& words) const {
    Launched verb(words, variables());
    EXPECT_EQ(verb.wait(), 0) << verb.err();
    return verb.out();
  }
  /// Polls: a job is listed once its workers run.
  bool listed() const {
    return in_a_while([&] { return nlohmann::json::parse(said({"ps", "--json"})).size() == 1; });
  }

  const TempFolder folder_;
};

TEST_F(Stopped, RanksStopWithTheirLauncherAndGoOnWithIt) {
  Launched run(shell(2, "echo ready; exec sleep 600"), variables(), Launched::Group::kOwn);
  ASSERT_TRUE(run.wait_for("ready", 2));
  ASSERT_TRUE(listed());
  EXPECT_EQ(nlohmann::json::parse(said({"ps", "--json"}))[0]["stopped"], false);
  for (int round = 0; round < 2; ++round) {
    run.send(SIGTSTP);
    EXPECT_TRUE(in_a_while([&] { return stopped_of(run) == 3; })) << "the agent and two ranks";
    EXPECT_TRUE(stands_still(run.pid())) << "the shell has to see it";
    EXPECT_TRUE(has(said({"ps"}), " stopped "));
    EXPECT_EQ(nlohmann::json::parse(said({"ps", "--json"}))[0]["stopped"], true);
    run.send(SIGCONT);
    EXPECT_TRUE(in_a_while([&] { return stopped_of(run) == 0; }));
  }
  run.send(SIGTERM);
  EXPECT_EQ(run.wait(), 143);
}

TEST_F(Stopped, StopEndsOneThatIsStopped) {
  Launched run(shell(2, "echo ready; exec sleep 600", {"--rdzv_id", "one"}), variables(),
               Launched::Group::kOwn);
  ASSERT_TRUE(run.wait_for("ready", 2));
  ASSERT_TRUE(listed());
  run.send(SIGTSTP);
  EXPECT_TRUE(in_a_while([&] { return stopped_of(run) == 3; }));
  EXPECT_TRUE(has(said({"stop", "one"}), "has ended"));
  EXPECT_EQ(run.wait(), 143);
  EXPECT_TRUE(run.wait_all_gone());
}

TEST_F(Stopped, RanksStopWithTheStarterOfTheirHosts) {
  Launched run({"run", "-H", "localhost:2", "--", "/bin/sh", "-c", "echo ready; exec sleep 600"},
               variables(), Launched::Group::kOwn);
  ASSERT_TRUE(run.wait_for("ready", 2));
  for (int round = 0; round < 2; ++round) {
    run.send(SIGTSTP);
    EXPECT_TRUE(in_a_while([&] { return stopped_of(run) == 3; })) << "the starter and two ranks";
    EXPECT_TRUE(stands_still(run.pid()));
    run.send(SIGCONT);
    EXPECT_TRUE(in_a_while([&] { return stopped_of(run) == 0; }));
  }
  run.send(SIGTERM);
  EXPECT_EQ(run.wait(), 143);
}

/// As under `docker run -it`: in a separate session, where no shell could continue it.
Words in_a_session_of_its_own(const Words& words) {
  Words all = {"/usr/bin/setsid", built_program("lockstep")};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

TEST_F(Stopped, CtrlZIsIgnoredWhereNobodyCouldContinueIt) {
  for (const Words& words : {shell(2,
                                   "trap 'echo rank has seen it' USR1; echo ready; "
                                   "while :; do sleep 0.05; done"),
                             Words{"run", "-H", "localhost:2", "--", "/bin/sh", "-c",
                                   "trap 'echo rank has seen it' USR1; echo ready; "
                                   "while :; do sleep 0.05; done"}}) {
    Launched run(in_a_session_of_its_own(words), variables());
    ASSERT_TRUE(run.wait_for("ready", 2));
    run.send(SIGTSTP);
    ASSERT_TRUE(in_a_while([&] { return !is_pending(run.pid(), SIGTSTP); }));
    run.send(SIGUSR1);  // a stopped process would not forward it
    EXPECT_TRUE(run.wait_for("rank has seen it", 2, 20s)) << "it is stopped";
    EXPECT_EQ(stopped_of(run), 0);
    run.send(SIGTERM);
    run.send(SIGCONT);
    EXPECT_EQ(run.wait(), 143);
  }
}

TEST(Grace, RanksThatAreWaitedForAreNamed) {
  Launched run(shell(2, "trap '' TERM; echo ready; while :; do sleep 0.05; done",
                     {"--shutdown_timeout", "4"}));
  ASSERT_TRUE(run.wait_for("ready", 2));
  run.send(SIGTERM);
  EXPECT_TRUE(run.wait_for("waiting for ranks 0, 1 to end; SIGKILL in")) << run.err();
  EXPECT_EQ(run.wait(), 143);
}

/// As a shell without job control starts a background command.
Words in_background(const Words& words) {
  Words all = {"/bin/sh", "-c", "trap '' INT; exec \"$0\" \"$@\"", built_program("lockstep")};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

TEST(Ignored, ASignalThatIsNamedIsTaken) {
  Launched run(in_background(shell(2, "trap 'exit 9' INT; echo ready; while :; do sleep 0.05; done",
                                   {"--signals_to_handle", "SIGTERM,SIGINT"})));
  ASSERT_TRUE(run.wait_for("ready", 2));
  run.send(SIGINT);
  EXPECT_EQ(run.wait(), 9) << "a shell cannot trap what was ignored when it began";
}

TEST(Ignored, OneThatIsNotNamedStaysSo) {
  Launched run(in_background(shell(1, "echo ready; read line; exit 3")));
  ASSERT_TRUE(run.wait_for("ready"));
  run.send(SIGINT);
  EXPECT_EQ(run.wait(), 3);
}

}  // namespace
}  // namespace lockstep::testing
