// The small pure parts of the agent.

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "lockstep/error.h"
#include "lockstep/launch/agent/worker_command.h"
#include "lockstep/launch/agent/worker_output.h"
#include "lockstep/launch/job/failure.h"
#include "lockstep/launch/process/line_splitter.h"
#include "lockstep/launch/process/program.h"
#include "lockstep/world/host_load.h"
#include "lockstep/world/identity.h"
#include "lockstep/world/join/this_process.h"
#include "lockstep/world/worker_env.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

TEST(WorkerCommand, OneJobsCommandsDifferByArgumentsAndNotByTheProgramsFolder) {
  const auto text = [](const Lines& command) {
    RunOptions options;
    options.command = command;
    return program_and_arguments(options);
  };
  EXPECT_EQ(text({"/home/a/train.py", "-c", "x"}), text({"/home/b/train.py", "-c", "x"}));
  EXPECT_NE(text({"train.py", "-c", "x"}), text({"train.py", "-c", "y"}));
  EXPECT_NE(text({"train.py", "-c", "x"}), text({"train.py", "-c x"}));
  EXPECT_NE(text({"train.py"}), text({"train.py", ""}));
}

TEST(LineSplitter, PiecesOfAnySizeGiveWholeLines) {
  const std::string text = "one\n\ntwo three\nlast";
  for (size_t step = 1; step <= text.size(); ++step) {
    LineSplitter splitter;
    Lines lines;
    for (size_t at = 0; at < text.size(); at += step) {
      for (auto& line : splitter.feed(text.substr(at, step))) lines.push_back(line);
    }
    EXPECT_EQ(lines, (Lines{"one", "", "two three"})) << step;
    EXPECT_EQ(splitter.finish(), "last");
    EXPECT_EQ(splitter.finish(), "");
  }
}

TEST(LineSplitter, LongLinesAreCut) {
  LineSplitter splitter(4, "");
  EXPECT_EQ(splitter.feed("abcd\nabcdefghi\n"), (Lines{"abcd", "abcd", "efgh", "i"}));
  EXPECT_EQ(splitter.feed("abcd"), Lines{});
  EXPECT_EQ(splitter.feed("e"), Lines{"abcd"});
  EXPECT_EQ(splitter.finish(), "e");
}

TEST(LineSplitter, WhereALineIsCutIsToBeSeen) {
  LineSplitter splitter(4, "~");
  EXPECT_EQ(splitter.feed("abcd\nabcdefghi\n"), (Lines{"abcd", "abcd~", "efgh~", "i"}));
  LineSplitter usual;
  const auto lines = usual.feed(std::string(LineSplitter::kMaxLineBytes + 1, 'x') + "\n");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_TRUE(lines[0].ends_with("x [cut after 64 KiB]"));
  EXPECT_EQ(lines[1], "x");
}

TEST(LineSplitter, ProgressBarsShowTheirLastState) {
  LineSplitter splitter;
  EXPECT_EQ(splitter.feed("\r10%\r50%\r100%\nnext\r\n"), (Lines{"100%", "next"}));
}

TEST(LineSplitter, WhatHasNoEndYetCanBeSeen) {
  LineSplitter splitter;
  splitter.feed("one\nName? ");
  EXPECT_EQ(splitter.unfinished(), "Name? ");
  EXPECT_FALSE(splitter.is_bar());
  splitter.feed("me\n\r10%\r2");
  EXPECT_EQ(splitter.unfinished(), "2");
  EXPECT_TRUE(splitter.is_bar());
  EXPECT_EQ(splitter.feed("0%\r\n"), Lines{"20%"});
  EXPECT_EQ(splitter.unfinished(), "");
}

TEST(LineSplitter, ABarOfAnyLengthIsOneLine) {
  LineSplitter splitter(32);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(splitter.feed("state " + std::to_string(i) + "\r"), Lines{});
  EXPECT_EQ(splitter.feed("\n"), Lines{"state 99"});
}

TEST(Tail, KeepsTwentyBoundedLines) {
  Tail tail;
  for (int i = 0; i < 30; ++i) tail.add(std::to_string(i) + std::string(2000, 'x'));
  const auto lines = tail.lines();
  ASSERT_EQ(lines.size(), 20U);
  EXPECT_EQ(lines[0].substr(0, 3), "10x");
  EXPECT_EQ(lines[0].size(), 1000U);
}

TEST(RankAssignment, NodesInOrderRanksInARow) {
  const auto assignment = assign_ranks({{"a", 3, 2, "x"}, {"b", 3, 1, "y"}, {"c", 3, 4, "x"}});
  ASSERT_EQ(assignment.size(), 3U);
  EXPECT_EQ(assignment[0].first_rank, 0);
  EXPECT_EQ(assignment[1].first_rank, 2);
  EXPECT_EQ(assignment[2].first_rank, 3);
  EXPECT_EQ(assignment[2].first_role_rank, 2);
  EXPECT_EQ(assignment[2].role_size, 6);
  EXPECT_EQ(assignment[1].role_size, 1);
  EXPECT_EQ(world_size(assignment), 7);
}

TEST(RankAssignment, DisagreementNamesBothNodes) {
  try {
    assign_ranks({{"a", 2, 1, "x"}, {"b", 3, 1, "x"}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kMismatch);
    EXPECT_NE(std::string(error.what()).find("host 1 (b)"), std::string::npos);
  }
}

JobAssignment two_nodes() {
  JobAssignment assignment;
  assignment.run_id = "run";
  assignment.node_rank = 1;
  assignment.num_nodes = 2;
  assignment.ranks = assign_ranks({{"a", 2, 2, "x"}, {"b", 2, 3, "x"}})[1];
  assignment.world_size = 5;
  assignment.host = "b";
  assignment.store = {"10.0.0.1", 4000};
  assignment.secret = "s";
  assignment.master_addr = "10.0.0.1";
  assignment.master_port = 5000;
  return assignment;
}

TEST(WorkerEnvironment, IsWhatTheWorkersIdentityIsReadFrom) {
  WorkerEnvOptions options;
  options.role = "x";
  options.cores = 7;
  const auto environment = worker_environment({{"PATH", "/bin"}}, two_nodes(), 2, options);
  for (const char* launcher : {"", "torch"}) {
    Environment read = environment;
    read["LOCKSTEP_LAUNCHER"] = launcher;
    const Identity id = decide_identity(read);  // both sources agree, or this would throw
    EXPECT_EQ(id.rank, 4);
    EXPECT_EQ(id.size, 5);
    EXPECT_EQ(id.local_rank, 2);
    EXPECT_EQ(id.local_size, 3);
    EXPECT_EQ(id.node_rank, 1);
    EXPECT_EQ(id.num_nodes, 2);
    EXPECT_EQ(id.job_id, "run");
  }
  EXPECT_EQ(environment.at("ROLE_RANK"), "4");
  EXPECT_EQ(environment.at("OMP_NUM_THREADS"), "2");
  EXPECT_EQ(environment.at("PATH"), "/bin");
}

TEST(WorkerEnvironment, SaysToWhichCpusAWorkerIsBoundAndHasNoMoreThreads) {
  WorkerEnvOptions options;
  options.cores = 12;
  const Environment base = {{"LOCKSTEP_CPUS", "7"}};
  EXPECT_EQ(worker_environment(base, two_nodes(), 0, options).count("LOCKSTEP_CPUS"), 0U);
  options.cpus = {0, 1, 8};
  options.cpu_sharers = 2;
  const auto environment = worker_environment(base, two_nodes(), 0, options);
  EXPECT_EQ(environment.at("LOCKSTEP_CPUS"), "0-1,8");
  EXPECT_EQ(environment.at("LOCKSTEP_CPU_SHARERS"), "2");
  EXPECT_EQ(environment.at("OMP_NUM_THREADS"), "3");
}

TEST(WorkerEnvironment, WorkersSpeakTlsWhereTheirStoreDoes) {
  JobAssignment assignment = two_nodes();
  for (const Wire wire : {Wire::kTls, Wire::kPlain}) {
    assignment.wire = wire;
    const auto environment = worker_environment({{"LOCKSTEP_TLS", "1"}}, assignment, 0, {});
    EXPECT_EQ(decide_identity(environment).wire, wire);
  }
}

TEST(WorkerEnvironment, BeforeTheJobBeginsItHasNothingOfARank) {
  WorkerEnvOptions options;
  options.cores = 7;
  options.agent = "agent";
  const auto waiting = waiting_environment({{"PATH", "/bin"}}, 3, options);
  EXPECT_EQ(waiting.count("RANK"), 0U);
  EXPECT_EQ(waiting.count("LOCKSTEP_RANK"), 0U);
  const auto later = worker_environment({{"PATH", "/bin"}}, two_nodes(), 0, options);
  for (const auto& [name, value] : waiting) EXPECT_EQ(later.at(name), value) << name;
}

TEST(WorkerEnvironment, KeepsWhatTheUserSetAndReplacesAnOuterJobs) {
  const Environment base = {
      {"OMP_NUM_THREADS", "9"}, {"RANK", "77"}, {"LOCKSTEP_LAUNCHER", "torch"}};
  const auto environment = worker_environment(base, two_nodes(), 0, {});
  EXPECT_EQ(environment.at("OMP_NUM_THREADS"), "9");
  EXPECT_EQ(environment.at("RANK"), "2");
  EXPECT_EQ(environment.count("LOCKSTEP_LAUNCHER"), 0U);
}

TEST(Failure, TravelsAsJson) {
  Failure failure;
  failure.node_rank = 2;
  failure.host = "h";
  failure.rank = 5;
  failure.status = {0, SIGSEGV};
  failure.seconds = 1.5;
  failure.stderr_tail = {"a", "bytes \xff"};
  const Failure read = failure_from_json(to_json(failure));
  EXPECT_EQ(read.rank, 5);
  EXPECT_EQ(read.status.signal, SIGSEGV);
  EXPECT_EQ(read.stderr_tail.size(), 2U);
  EXPECT_THROW(failure_from_json("{}"), Error);
  EXPECT_THROW(failure_from_json("nonsense"), Error);
}

TEST(Failure, ReportIsFactsThenStderr) {
  Failure failure;
  failure.host = "gpu01";
  failure.rank = 5;
  failure.status = {3, 0};
  failure.seconds = 12.34;
  failure.stderr_tail = {"one", "two"};
  EXPECT_EQ(report_text(failure, 1),
            "lockstep run: rank 5 (gpu01) failed first: exit code 3 after 12 s: two\n"
            "  end of its stderr:\n    one\n    two");
  EXPECT_EQ(report_text(failure, 1, true),
            "lockstep run: rank 5 (gpu01) failed first: exit code 3 after 12 s: two\n"
            "  the end of its stderr is above");
  failure.stderr_tail = {"one", "  indented", "", " "};
  EXPECT_EQ(failure_line(failure, 1), "rank 5 (gpu01) failed: exit code 3 after 12 s: indented");
  EXPECT_EQ(failure_words(failure), "rank 5: indented");
  failure.stderr_tail = {std::string(299, 'x') + "\u00e9 is cut before a letter of two bytes"};
  EXPECT_TRUE(failure_line(failure, 1).ends_with(": " + std::string(299, 'x') + "..."));
  failure.status = {0, SIGBUS};
  failure.node_rank = 1;
  failure.stderr_tail.clear();
  EXPECT_EQ(failure_words(failure), "rank 5");
  EXPECT_EQ(report_text(failure, 2),
            "lockstep run: rank 5 (host 1, gpu01) failed first: SIGBUS after 12 s\n"
            "  nothing on its stderr");
}

TEST(Failure, SigkillHasTwoCausesThatTheKernelKnows) {
  Failure failure;
  failure.host = "gpu01";
  failure.rank = 1;
  failure.status = {0, SIGKILL};
  failure.seconds = 2;
  EXPECT_EQ(report_text(failure, 1),
            "lockstep run: rank 1 (gpu01) failed first: SIGKILL after 2.00 s (killed from outside, "
            "or out of memory: see the kernel's log)\n  nothing on its stderr");
}

TEST(Failure, SigkillLeavesNoTimeForLastWords) {
  Failure failure;
  failure.host = "gpu01";
  failure.rank = 1;
  failure.status = {0, SIGKILL};
  failure.seconds = 2;
  failure.stderr_tail = {"lockstep: 2 ranks, 1 thread each"};
  EXPECT_EQ(failure_line(failure, 1), "rank 1 (gpu01) failed: SIGKILL after 2.00 s");
  EXPECT_EQ(failure_words(failure), "rank 1");
  EXPECT_EQ(report_text(failure, 1),
            "lockstep run: rank 1 (gpu01) failed first: SIGKILL after 2.00 s (killed from outside, "
            "or out of memory: see the kernel's log)\n"
            "  end of its stderr:\n    lockstep: 2 ranks, 1 thread each");
  failure.cause = "RuntimeError: no space\nmore";
  EXPECT_EQ(failure_words(failure), "rank 1: RuntimeError: no space");
}

TEST(Failure, AKnownCauseIsSaidAndNotWhatIsMissing) {
  Failure failure;
  failure.host = "gpu01";
  failure.rank = 1;
  failure.status = {1, 0};
  failure.seconds = 2;
  failure.cause = "lockstep train: error: no finite loss\nmore";
  EXPECT_EQ(report_text(failure, 1),
            "lockstep run: rank 1 (gpu01) failed first: exit code 1 after 2.00 s: lockstep train: "
            "error: no finite loss\n"
            "  lockstep train: error: no finite loss\n  more");
  EXPECT_EQ(
      failure_line(failure, 1),
      "rank 1 (gpu01) failed: exit code 1 after 2.00 s: lockstep train: error: no finite loss");
}

TEST(HostLoad, IsBusyWhereProcessesWaitForCores) {
  const std::string pressure = "some avg10=90.51 avg60=87.56 avg300=60.00 total=1\nfull avg10=0.00";
  EXPECT_TRUE(read_load(pressure, "8.11 8.15 6.31 12/241 32348\n", 2).busy());
  EXPECT_EQ(read_load(pressure, "8.11 8.15", 2).text(),
            "processes wait for a core 91 % of the time (load 8.1 on 2 cores)");
  EXPECT_FALSE(read_load("some avg10=3.00 avg60=87.56", "8.11", 2).busy());
  EXPECT_TRUE(read_load("", "8.11", 2).busy()) << "where the kernel does not count it";
  EXPECT_FALSE(read_load("", "2.11", 2).busy());
  EXPECT_EQ(read_load("", "1.00", 1).text(), "load 1.0 on 1 core");
  EXPECT_FALSE(read_load("", "", 2).busy());
}

TEST(FindProgram, AVerbIsNoProgram) {
  EXPECT_NE(find_program("train", "/bin").problem.find("did you mean '-- lockstep train'?"),
            std::string::npos);
  EXPECT_EQ(find_program("nonsense", "/bin").problem, "program nonsense is not in PATH");
}

TEST(FindProgram, AsAShellDoes) {
  EXPECT_EQ(find_program("sh", "/nowhere:/bin").path, "/bin/sh");
  EXPECT_EQ(find_program("/bin/sh", "").path, "/bin/sh");
  EXPECT_EQ(find_program("no-such", "/bin").exit_code, 127);
  EXPECT_EQ(find_program("/etc/passwd", "").exit_code, 126);
}

TEST(FindProgram, AnEmptyNameIsSaidToBeOne) {
  EXPECT_EQ(find_program("", "/bin").problem, "the program's name is empty");
  EXPECT_EQ(find_program("", "/bin").exit_code, 127);
}

TEST(FindProgram, AScriptsInterpreterThatIsNotThereIsNamed) {
  const TempFolder folder;
  const std::string script = folder / "script";
  std::ofstream(script) << "#! /no/such/shell -e\nexit 0\n";
  std::filesystem::permissions(script, std::filesystem::perms(0755));
  EXPECT_EQ(find_program(script, "").problem,
            "script " + script + ": its interpreter /no/such/shell does not exist");
  EXPECT_EQ(find_program(script, "").exit_code, 126);
  std::ofstream(script) << "#!/bin/sh\nexit 0\n";
  EXPECT_EQ(find_program(script, "").path, script);
}

}  // namespace
}  // namespace lockstep
