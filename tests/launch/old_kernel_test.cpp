// `lockstep run` where the kernel, or a container's filter, refuses pidfds and close_range.

#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/deadline.h"
#include "tests/launch/launched.h"
#include "tests/support/refused_calls.h"

namespace lockstep::testing {
namespace {

using namespace std::chrono_literals;

class OldKernel : public ::testing::TestWithParam<int> {
 protected:
  static std::unique_ptr<Launched> launched(const std::vector<std::string>& words) {
    std::unique_ptr<Launched> run;
    run_refused(kCallsSinceLinux5, GetParam(), [&] { run = std::make_unique<Launched>(words); });
    return run;
  }
};
INSTANTIATE_TEST_SUITE_P(Calls, OldKernel, ::testing::Values(ENOSYS, EPERM), [](const auto& given) {
  return given.param == EPERM ? "EPERM" : "ENOSYS";
});

TEST_P(OldKernel, RanksRunAndTheirEndsAreSeen) {
  const auto good = launched(shell(3, "echo rank $RANK"));
  EXPECT_EQ(good->wait(), 0) << good->err();
  EXPECT_EQ(times_in(good->out(), "rank "), 3) << good->out();
  for (const auto& [end, code] : {std::pair{"exit 3", 3}, {"kill -KILL $$", 137}}) {
    const auto bad =
        launched(shell(3, std::string("if [ $RANK = 1 ]; then ") + end + "; fi; exec sleep 600"));
    EXPECT_EQ(bad->wait(), code) << bad->err();
    EXPECT_TRUE(has(bad->err(), "rank 1 (")) << bad->err();
    EXPECT_TRUE(bad->wait_all_gone());
  }
}

TEST_P(OldKernel, RanksAreForkedAndRestarted) {
  const auto run = launched({"run", "--nproc_per_node", "2", "--max_restarts", "1", "--",
                             built_program("fork_server_worker"), "", "kill"});
  EXPECT_EQ(run->wait(), 0) << run->err();
  EXPECT_EQ(times_in(run->out(), "forked rank 1 of 2 attempt 1"), 1) << run->out();
  EXPECT_TRUE(run->alive().empty());
}

TEST_P(OldKernel, ASignalEndsAProgramThatLoads) {
  const auto run = launched(
      {"run", "--nproc_per_node", "2", "--", built_program("fork_server_worker"), "load", ""});
  ASSERT_TRUE(run->wait_for("loading"));
  run->send(SIGTERM);
  EXPECT_EQ(run->wait(), 143) << run->err();
  EXPECT_TRUE(run->alive().empty());
}

TEST_P(OldKernel, StopEndsAJob) {
  const auto run = launched(shell(2, "exec sleep 600", {"--rdzv_id", "to-stop"}));
  const auto deadline = Deadline::after(60s);
  int code = 1;
  std::string said;
  do {  // an agent is listed a moment after its start
    const auto stop = launched({"stop", "to-stop"});
    code = stop->wait();
    said = stop->out() + stop->err();
  } while (code != 0 && !deadline.passed());
  EXPECT_TRUE(has(said, "has ended")) << said;
  EXPECT_EQ(run->wait(), 143);
  EXPECT_TRUE(run->wait_all_gone());
}

/// Descriptors of the watchdog among `pids`; -1: there is none.
int descriptors_of_watchdog(const std::vector<pid_t>& pids) {
  for (const pid_t pid : pids) {
    const auto process = std::filesystem::path("/proc") / std::to_string(pid);
    std::ifstream file(process / "comm");
    std::string name;
    std::getline(file, name);
    std::error_code gone;
    const std::filesystem::directory_iterator open(process / "fd", gone);
    if (name == "lockstep-watchd") return static_cast<int>(std::distance(open, {}));
  }
  return -1;
}

TEST_P(OldKernel, TheWatchdogHoldsNothingOfTheAgentAndKillsTheRanksOfADeadOne) {
  const auto run = launched(shell(2, "echo ready; exec sleep 600"));
  ASSERT_TRUE(run->wait_for("ready", 2));
  const auto deadline = Deadline::after(60s);
  int open = -1;
  while ((open = descriptors_of_watchdog(run->alive())) != 1 && !deadline.passed())
    std::this_thread::sleep_for(5ms);
  EXPECT_EQ(open, 1) << "only its end of the agent's pipe";
  run->send(SIGKILL);
  EXPECT_EQ(run->wait(), 137);
  EXPECT_TRUE(run->wait_all_gone());
}

}  // namespace
}  // namespace lockstep::testing
