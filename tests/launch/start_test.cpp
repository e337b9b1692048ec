// lockstep run -H: one command starts agents "on several hosts", here by sh instead of ssh.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/launch/launched.h"
#include "tests/support/temp_folder.h"

namespace lockstep::testing {
namespace {

using Words = std::vector<std::string>;

/// Hosts a with two ranks and b with one; both are this host.
Words on_hosts(const Words& options, const Words& program) {
  Words words = {"run",           "-H",       "a:2,b", "--rsh", "env LOCKSTEP_HOST_ID={host} sh -c",
                 "--master_addr", "127.0.0.1"};
  words.insert(words.end(), options.begin(), options.end());
  words.emplace_back("--");
  words.insert(words.end(), program.begin(), program.end());
  return words;
}

Words shell(const std::string& script, const Words& options = {}) {
  return on_hosts(options, {"/bin/sh", "-c", script});
}

TEST(Start, HostsFormOneWorld) {
  Launched run(on_hosts({}, {built_program("world_worker")}));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_TRUE(has(run.out(), "rank 0/3 local 0/2 node 0/2")) << run.out();
  EXPECT_TRUE(has(run.out(), "rank 1/3 local 1/2 node 0/2")) << run.out();
  EXPECT_TRUE(has(run.out(), "rank 2/3 local 0/1 node 1/2")) << run.out();
  EXPECT_TRUE(run.wait_all_gone());
}

TEST(Start, VariablesGoAlongAndTheSecretIsOnNoCommandLine) {
  const TempFolder folder;
  const auto file = [&](const std::string& rank) { return (folder / ("cmd" + rank)).string(); };
  // The agent is the worker's parent. The secret may only be where workers read it.
  const std::string script = "tr '\\0' ' ' < /proc/$PPID/cmdline > " + (folder / "cmd").string() +
                             "$RANK; echo given $GIVEN, taken $TAKEN; pwd";
  Launched good(shell(script, {"-x", "GIVEN=a b", "-x", "TAKEN"}),
                {{"TAKEN", "here"}, {"LOCKSTEP_SECRET", "not-to-be-seen"}});
  EXPECT_EQ(good.wait(), 0) << good.err();
  const auto lines = lines_of(good.out());
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                          [](const auto& line) { return has(line, "given a b, taken here"); }),
            3)
      << good.out();
  for (const char* rank : {"0", "1", "2"}) {
    std::ifstream command(file(rank));
    const std::string text{std::istreambuf_iterator<char>(command), {}};
    EXPECT_TRUE(has(text, "--from_stdin")) << text;
    EXPECT_FALSE(has(text, "not-to-be-seen")) << text;
  }
}

// Names and values are bytes on Linux.
TEST(Start, BytesThatAreNoTextArrive) {
  const TempFolder folder;
  const auto odd = folder / "caf\xe9";
  std::filesystem::create_directory(odd);
  Launched run(shell("printf %s \"$GIVEN $0\" | od -An -tx1; pwd | od -An -tx1 | tail -n 2",
                     {"-x", "GIVEN=\xe9\xff", "--wdir", odd.string()}));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_TRUE(has(run.out(), "e9 ff 20")) << run.out();
  EXPECT_FALSE(has(run.out(), "ef bf bd")) << run.out();
}

TEST(Start, PortsThatNobodyNamesAreOfTheRange) {
  const std::string script = "echo port $((MASTER_PORT / 1000)), $LOCKSTEP_PORT_RANGE";
  Launched run(shell(script, {"--port_range", "17000-17999"}));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_TRUE(has(run.out(), "port 17, 17000-17999")) << run.out();
}

TEST(Start, AFailureEndsAllHostsAndIsReportedOnceAndLast) {
  Launched run(shell("if [ $RANK = 2 ]; then echo broken >&2; exit 7; fi; exec sleep 600"));
  EXPECT_EQ(run.wait(), 7);
  const auto lines = lines_of(run.err());
  const auto reports = std::count_if(lines.begin(), lines.end(), [](const auto& line) {
    return has(line, "failed first: exit code 7");
  });
  EXPECT_EQ(reports, 1) << run.err();
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.back(), "  the end of its stderr is above") << run.err();
  EXPECT_TRUE(run.wait_all_gone());
}

TEST(Start, SignalsReachTheWorkersOfAllHosts) {
  Launched run(shell("echo ready; exec sleep 600"));
  ASSERT_TRUE(run.wait_for("ready", 3));
  run.send(SIGINT);
  EXPECT_EQ(run.wait(), 130) << run.err();
  EXPECT_TRUE(run.wait_all_gone());
}

TEST(Start, WhenItIsKilledNothingIsLeft) {
  Launched run(shell("echo ready; exec sleep 600"));
  ASSERT_TRUE(run.wait_for("ready", 3));
  run.send(SIGKILL);
  EXPECT_EQ(run.wait(), 137);
  EXPECT_TRUE(run.wait_all_gone());
}

TEST(Start, AHostThatCannotBeReachedIsNamed) {
  Launched run({"run", "-H", "localhost,b", "--rsh", "false", "--", "/bin/sleep", "600"});
  EXPECT_EQ(run.wait(), 1);
  EXPECT_TRUE(has(run.err(), "b: no agent could be started there")) << run.err();
  EXPECT_TRUE(run.wait_all_gone());
}

TEST(Start, WhatReachesAHostAndEndsWellWithoutAnAgentThereIsNoSuccess) {
  for (const char* hosts : {"b", "localhost,b"}) {
    SCOPED_TRACE(hosts);
    Launched run({"run", "-H", hosts, "--rsh", "true", "--", "/bin/sleep", "600"});
    EXPECT_EQ(run.wait(), 1);
    EXPECT_TRUE(has(run.err(), "b: no agent could be started there (exit code 0 of true)"))
        << run.err();
    EXPECT_TRUE(run.wait_all_gone());
  }
}

TEST(Start, AGreetingOfTheOtherHostsShellNeedNotEndItsLine) {
  const TempFolder folder;
  const auto shell = (folder / "rsh").string();
  std::ofstream(shell) << "printf 'Welcome to '; printf %s $1; exec sh -c \"$2\"";
  Launched run({"run", "-H", "b", "--rsh", "sh " + shell, "--", "/bin/echo", "it ran"});
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_TRUE(has(run.out(), "[b] Welcome to b\n[0] it ran\n")) << run.out();
}

TEST(Start, AHostFileAndAHostThatIsThisOne) {
  const TempFolder folder;
  const auto file = (folder / "hosts").string();
  std::ofstream(file) << "# one\nlocalhost slots=3\n";
  Launched run(
      {"run", "--hostfile", file, "-np", "2", "--", "/bin/sh", "-c", "echo $RANK/$WORLD_SIZE"});
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_TRUE(has(run.out(), "[0] 0/2")) << run.out();
  EXPECT_TRUE(has(run.out(), "[1] 1/2")) << run.out();
}

}  // namespace
}  // namespace lockstep::testing
