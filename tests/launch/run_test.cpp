// `lockstep run` on one node, end to end: the real binary with shell scripts as workers.

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "lockstep/base/socket.h"
#include "lockstep/deadline.h"
#include "lockstep/world/cores.h"
#include "lockstep/world/identity.h"
#include "tests/launch/launched.h"

namespace lockstep::testing {
namespace {

using namespace std::chrono_literals;

class Folder {
 public:
  Folder() : path_(::testing::TempDir() + "lockstep_run_test." + std::to_string(::getpid())) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string path() const { return path_.string(); }
  std::string read(const std::string& name) const {
    std::ifstream file(path_ / name);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

 private:
  std::filesystem::path path_;
};

/// Shell code: one rank waits until another has reached a point.
constexpr char kReach[] = ": > $DONE;";
constexpr char kAwait[] = "while [ ! -e $DONE ]; do sleep 0.01; done;";

TEST(Run, SuccessShowsOnlyTheWorkersLines) {
  Launched run(shell(2, "echo out $RANK; echo err $RANK >&2"));
  EXPECT_EQ(run.wait(), 0);
  auto out = lines_of(run.out());
  std::sort(out.begin(), out.end());
  EXPECT_EQ(out, (std::vector<std::string>{"[0] out 0", "[1] out 1"}));
  EXPECT_EQ(lines_of(run.err()).size(), 2U) << run.err();
  EXPECT_TRUE(run.wait_all_gone());
}

TEST(Run, ExportedVariablesAreTheRanks) {
  Launched run(shell(1, "echo $A/$B", {"-x", "A=1", "-x", "B"}), {{"A", "0"}, {"B", "2"}});
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(run.out(), "1/2\n");
}

TEST(Run, AProgramThatIsNotThereLeavesNoLogFolder) {
  const Folder folder;
  Launched run({"run", "--redirects", "3", "--", "no-such-program"}, {{"TMPDIR", folder.path()}});
  EXPECT_EQ(run.wait(), 127) << run.err();
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Run, RanksThatHadEndedWellAreNamedBesideTheFirstFailure) {
  const Folder folder;
  // Rank 0 fails once the others' processes are gone.
  Launched run(shell(3,
                     "if [ $RANK != 0 ]; then echo $$ >$P$RANK; exit 0; fi;"
                     "for r in 1 2; do until [ -s $P$r ]; do sleep 0.01; done;"
                     "  while kill -0 $(cat $P$r) 2>/dev/null; do sleep 0.01; done; done; exit 3"),
               {{"P", folder.path() + "/process_"}});
  EXPECT_EQ(run.wait(), 3);
  EXPECT_TRUE(has(run.err(), "\n  ranks 1, 2 had ended before it, with exit code 0\n"))
      << run.err();
  Launched alone(shell(2, "[ $RANK != 0 ] || exit 3; exec sleep 600"));
  EXPECT_EQ(alone.wait(), 3);
  EXPECT_FALSE(has(alone.err(), "had ended before")) << alone.err();
}

TEST(Run, OutputThatCannotBeWrittenIsAFailure) {
  const std::string job = built_program("lockstep") + " run --nproc_per_node 2 -- echo a line";
  Launched full({"/bin/sh", "-c", job + " >/dev/full"});
  EXPECT_EQ(full.wait(), 1);
  EXPECT_EQ(full.err(),
            "lockstep run: error: write standard output: No space left on device; the ranks' "
            "output is lost\n");
  for (const std::string verb : {"env", "version", "--help"}) {
    Launched other({"/bin/sh", "-c", built_program("lockstep") + " " + verb + " >/dev/full"});
    EXPECT_EQ(other.wait(), 1) << verb;
    EXPECT_TRUE(has(other.err(), ": error: standard output cannot be written: No space left"))
        << other.err();
  }
}

TEST(Run, ExitCodeIsTheFailedWorkersAndTheOthersEnd) {
  const std::map<std::string, int> ends = {
      {"exit 3", 3}, {"kill -KILL $$", 137}, {"kill -SEGV $$", 139}, {"kill -TERM $$", 143}};
  for (const auto& [end, code] : ends) {
    SCOPED_TRACE(end);
    Launched run(shell(3, "if [ $RANK = 1 ]; then " + end + "; fi; exec sleep 600"));
    EXPECT_EQ(run.wait(), code);
    EXPECT_TRUE(has(run.err(), "rank 1 (")) << run.err();
    const std::string named = code == 3     ? "exit code 3"
                              : code == 137 ? "SIGKILL"
                              : code == 139 ? "SIGSEGV"
                                            : "SIGTERM";
    EXPECT_TRUE(has(run.err(), named)) << run.err();
    EXPECT_TRUE(run.wait_all_gone());
  }
}

TEST(Run, ReportIsLastWithTheLastTwentyLines) {
  const Folder folder;
  const std::string script =
      std::string(
          "if [ $RANK = 0 ]; then trap 'for i in $(seq 40); do echo goodbye >&2; done; "
          "exit 0' TERM;") +
      kReach + "  while :; do sleep 0.01; done; fi;" + kAwait +
      "for i in $(seq 25); do echo line $i >&2; done; printf 'no newline' >&2; exit 7";
  Launched run(shell(2, script), {{"DONE", folder.path() + "/done"}});
  EXPECT_EQ(run.wait(), 7);
  const auto lines = lines_of(run.err());
  const auto report = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
    return has(line, "lockstep run: rank 1 (");
  });
  ASSERT_NE(report, lines.end()) << run.err();
  const std::vector<std::string> tail(report + 1, lines.end());
  ASSERT_EQ(tail.size(), 21U) << run.err();
  EXPECT_EQ(tail[1], "    line 7");
  EXPECT_EQ(tail[20], "    no newline");
  EXPECT_NE(std::find(lines.begin(), report, "[0] goodbye"), report) << run.err();
  EXPECT_NE(std::find(lines.begin(), report, "[1] no newline"), report) << run.err();
}

TEST(Run, OneErrorIsSaidOnce) {
  const std::string error = "prog: error: no finite loss";
  // Both print it, one of them after lines are held back.
  const Folder folder;
  const std::string script =
      std::string("trap '' TERM; [ $RANK = 0 ] && { ") + kAwait +
      " while kill -0 $(cat $DONE) 2>/dev/null; do sleep 0.01; done; sleep 0.3; }; echo '" + error +
      "' >&2; echo $$ >$DONE.$RANK; mv $DONE.$RANK $DONE; exit 1";
  Launched run(shell(2, script), {{"DONE", folder.path() + "/done"}});
  EXPECT_EQ(run.wait(), 1);
  auto lines = lines_of(run.err());
  std::erase_if(lines, [](const auto& line) {  // where the machine is busy
    return has(line, "lockstep: waiting for rank 0 to end");
  });
  ASSERT_EQ(lines.size(), 3U) << run.err();
  EXPECT_EQ(lines[0], "[1] " + error);
  EXPECT_TRUE(has(lines[1], "lockstep run: rank 1 (")) << run.err();
  EXPECT_EQ(lines[2], "  the end of its stderr is above");
}

TEST(Run, SignalsAreForwardedAndEndTheJob) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    SCOPED_TRACE(signal);
    Launched run(shell(2, "echo ready; exec sleep 600"));
    ASSERT_TRUE(run.wait_for("ready", 2));
    run.send(signal);
    EXPECT_EQ(run.wait(), 128 + signal);
    EXPECT_FALSE(has(run.err(), "failed first")) << run.err();
    EXPECT_TRUE(run.wait_all_gone());
  }
}

TEST(Run, AWorkerMayEndInItsOwnWayOnASignal) {
  const std::string wait = "; echo ready; while :; do sleep 0.01; done";
  Launched five(shell(2, "trap 'exit 5' TERM" + wait));
  ASSERT_TRUE(five.wait_for("ready", 2));
  five.send(SIGTERM);
  EXPECT_EQ(five.wait(), 5);
  Launched well(shell(2, "trap 'exit 0' TERM" + wait));
  ASSERT_TRUE(well.wait_for("ready", 2));
  well.send(SIGTERM);
  EXPECT_EQ(well.wait(), 0);
}

TEST(Run, UserSignalsAreForwardedWithoutEndingAnything) {
  Launched run(shell(2,
                     "trap 'echo one' USR1; trap 'echo two; exit 0' USR2; echo ready;"
                     "while :; do sleep 0.01; done"));
  ASSERT_TRUE(run.wait_for("ready", 2));
  run.send(SIGUSR1);
  ASSERT_TRUE(run.wait_for("one", 2));
  run.send(SIGUSR2);
  EXPECT_EQ(run.wait(), 0);
  EXPECT_TRUE(has(run.out(), "[1] two"));
}

TEST(Run, KillingTheAgentLeavesNobody) {
  // Each worker is a shell with a child; one of its descendants leaves the group.
  Launched run(shell(2, "setsid sleep 600 & sleep 600 & echo ready; wait"));
  ASSERT_TRUE(run.wait_for("ready", 2));
  // The agent, its watchdog, and two shells with two children each. A process within exec has no
  // environment.
  const auto deadline = Deadline::after(60s);
  size_t seen = 0;
  while ((seen = run.alive().size()) < 8 && !deadline.passed()) std::this_thread::sleep_for(5ms);
  EXPECT_EQ(seen, 8U);
  run.send(SIGKILL);
  EXPECT_EQ(run.wait(), 137);
  EXPECT_TRUE(run.wait_all_gone());
}

TEST(Run, NothingAWorkerLeavesBehindOutlivesTheJob) {
  Launched run(shell(1, "setsid sleep 600 & sleep 600 & echo started"));
  EXPECT_EQ(run.wait(), 0);
  EXPECT_EQ(run.out(), "started\n");
  EXPECT_TRUE(run.alive().empty());
}

TEST(Run, AStoppedWorkerEndsAtOnce) {
  const Folder folder;
  const std::string script =
      "if [ $RANK = 0 ]; then echo $$ > $DONE.new; mv $DONE.new $DONE; kill -STOP $$; fi;" +
      std::string(kAwait) +
      "while ! grep -q '^State:.T' /proc/$(cat $DONE)/status; do sleep 0.01; done; exit 4";
  Launched run(shell(2, script, {"--shutdown_timeout", "600"}),
               {{"DONE", folder.path() + "/done"}});
  EXPECT_EQ(run.wait(), 4);
  EXPECT_TRUE(run.wait_all_gone());
}

TEST(Run, GraceEndsWithSigkill) {
  const Folder folder;
  const std::string script = std::string("if [ $RANK = 1 ]; then ") + kAwait +
                             "exit 4; fi; trap '' TERM;" + kReach + "while :; do sleep 0.01; done";
  Launched run(shell(2, script, {"--shutdown_timeout", "0.3"}),
               {{"DONE", folder.path() + "/done"}});
  EXPECT_EQ(run.wait(20s), 4);
  EXPECT_TRUE(run.wait_all_gone());
}

TEST(Run, ASecondInterruptDoesNotWaitForTheGrace) {
  Launched run(shell(1, "trap '' INT; echo ready; while :; do sleep 0.01; done"));
  ASSERT_TRUE(run.wait_for("ready"));
  run.send(SIGINT);
  EXPECT_EQ(run.wait(1s), -1);  // two signals pending at a time would count as one
  run.send(SIGINT);
  EXPECT_EQ(run.wait(20s), 130);
}

TEST(Run, LinesOfManyWorkersAreWhole) {
  constexpr int kLines = 2000;
  const std::string text(150, 'x');
  Launched run(shell(4, "seq -f \"$RANK:%g:" + text + ":\" " + std::to_string(kLines)));
  EXPECT_EQ(run.wait(), 0);
  std::vector<int> next(4, 1);
  const auto lines = lines_of(run.out());
  EXPECT_EQ(lines.size(), 4U * kLines);
  for (const std::string& line : lines) {
    const int rank = line[1] - '0';
    const std::string r(1, line[1]);
    ASSERT_TRUE(rank >= 0 && rank < 4) << line;
    const int number = next[static_cast<size_t>(rank)]++;
    ASSERT_EQ(line, "[" + r + "] " + r + ":" + std::to_string(number) + ":" + text + ":");
  }
}

TEST(Run, WorkersGetTorchrunsEnvironmentAndOurs) {
  Launched run(
      shell(2, "env"),
      {{"OMP_NUM_THREADS", ""}, {"OUTER", "kept"}, {"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGUSR1"}});
  ASSERT_EQ(run.wait(), 0);
  std::map<std::string, std::string> rank1;
  for (const std::string& line : lines_of(run.out())) {
    const size_t equals = line.find('=');
    if (line.rfind("[1] ", 0) == 0 && equals != std::string::npos)
      rank1[line.substr(4, equals - 4)] = line.substr(equals + 1);
  }
  const std::map<std::string, std::string> expected = {
      {"RANK", "1"},
      {"WORLD_SIZE", "2"},
      {"LOCAL_RANK", "1"},
      {"LOCAL_WORLD_SIZE", "2"},
      {"GROUP_RANK", "0"},
      {"GROUP_WORLD_SIZE", "1"},
      {"ROLE_RANK", "1"},
      {"ROLE_WORLD_SIZE", "2"},
      {"ROLE_NAME", "default"},
      {"MASTER_ADDR", "127.0.0.1"},
      {"TORCHELASTIC_RESTART_COUNT", "0"},
      {"TORCHELASTIC_MAX_RESTARTS", "0"},
      {"TORCHELASTIC_USE_AGENT_STORE", "True"},
      {"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT,SIGHUP,SIGQUIT"},
      {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
      {"OMP_NUM_THREADS", std::to_string(std::max(1, usable_cores() / 2))},
      {"LOCKSTEP_RANK", "1"},
      {"LOCKSTEP_WORLD_SIZE", "2"},
      {"OUTER", "kept"},
  };
  for (const auto& [name, value] : expected) {
    EXPECT_TRUE(rank1.count(name) == 1) << name;
    EXPECT_EQ(rank1[name], value) << name;
  }
  EXPECT_FALSE(rank1["TORCHELASTIC_RUN_ID"].empty());
  EXPECT_GT(std::stoi(rank1["MASTER_PORT"]), 0);
  EXPECT_EQ(rank1["TORCHELASTIC_ERROR_FILE"][0], '/');
  EXPECT_EQ(rank1["LOCKSTEP_SECRET"].size(), 64U);
}

TEST(Run, EndsWhenNobodyReadsItsOutput) {
  Launched run(
      {"/bin/sh", "-c", built_program("lockstep") + " run -- /usr/bin/yes | head -n 1; echo done"});
  EXPECT_EQ(run.wait(30s), 0);
  EXPECT_TRUE(run.wait_all_gone());
}

TEST(Run, LogFolderIsLaidOutAsTorchruns) {
  const Folder folder;
  // Rank 1 fails once rank 0 has written.
  const std::string script =
      std::string("echo out $RANK; echo err $RANK >&2; if [ $RANK = 0 ]; then ") + kReach +
      "exit 0; fi;" + kAwait + "exit 1";
  Launched both(shell(2, script, {"--log_dir", folder.path(), "--rdzv_id", "a"}),
                {{"DONE", folder.path() + "/done1"}});
  EXPECT_EQ(both.wait(), 1);
  EXPECT_EQ(folder.read("a/attempt_0/0/stdout.log"), "out 0\n");
  EXPECT_EQ(folder.read("a/attempt_0/1/stderr.log"), "err 1\n");
  EXPECT_TRUE(has(both.out(), "[0] out 0"));
  EXPECT_TRUE(has(both.err(), "a/attempt_0/1")) << both.err();

  Launched map(shell(2, script, {"--log_dir=" + folder.path(), "--rdzv-id", "a", "-r", "1:3"}),
               {{"DONE", folder.path() + "/done2"}});
  EXPECT_EQ(map.wait(), 1);
  EXPECT_EQ(folder.read("a_2/attempt_0/1/stdout.log"), "out 1\n");
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/a_2/attempt_0/0/stdout.log"));
  EXPECT_EQ(map.out(), "[0] out 0\n");
  EXPECT_TRUE(has(map.err(), "    err 1")) << "the report reads the file: " << map.err();
}

TEST(Run, OneRanksOutputIsItsOwnByteForByte) {
  Launched run(shell(1, "printf '{\"a\": 1}\\n\\r50%%'; printf 'x\\ny' >&2; exit 3"));
  EXPECT_EQ(run.wait(), 3);
  EXPECT_EQ(run.out(), "{\"a\": 1}\n\r50%");
  EXPECT_EQ(run.err().substr(0, 18), "x\ny\nlockstep run: ") << run.err();
  Launched asked(shell(1, "echo text"), {{"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "<${rank}>"}});
  EXPECT_EQ(asked.wait(), 0);
  EXPECT_EQ(asked.out(), "<0>text\n");
}

TEST(Run, RawShowsEveryRanksOutputAsItIs) {
  Launched run(shell(2, "echo text", {"--raw"}));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(run.out(), "text\ntext\n");
}

// A line without an end is shown all the same, and its rest follows it.
TEST(Run, AQuestionIsShownBeforeItIsAnswered) {
  const Folder folder;
  const std::string script =
      std::string("[ $RANK = 1 ] && exit 0; printf 'Name? ';") + kAwait + "echo me; echo next";
  Launched run(shell(2, script), {{"DONE", folder.path() + "/done"}});
  EXPECT_TRUE(run.wait_for("[0] Name? ")) << run.out();
  std::ofstream(folder.path() + "/done").flush();
  EXPECT_EQ(run.wait(), 0);
  EXPECT_EQ(run.out(), "[0] Name? me\n[0] next\n");
}

TEST(Run, AProgressBarIsShownWhileItRuns) {
  const Folder folder;
  const std::string script = std::string("[ $RANK = 1 ] && exit 0; printf '\\r10%%\\r33%%' >&2;") +
                             kAwait + "printf '\\r99%%\\n' >&2";
  const std::map<std::string, std::string> done = {{"DONE", folder.path() + "/done"}};
  Launched piped(shell(2, script), done);
  EXPECT_TRUE(piped.wait_for("[0] 33%\n")) << piped.err();
  std::ofstream(folder.path() + "/done").flush();
  EXPECT_EQ(piped.wait(), 0);
  EXPECT_EQ(piped.err(), "[0] 33%\n[0] 99%\n");
}

// script(1) provides the terminal.
TEST(Run, ATerminalHasTheBarAtItsFootAndWorkersKnowOfIt) {
  const Folder folder;
  const std::string command =
      built_program("lockstep") + " run --nproc_per_node 2 -- sh -c '[ $RANK = 1 ] && { " + kAwait +
      " [ $(stat -Lc %d:%i /proc/$$/fd/2) = $LOCKSTEP_TERMINAL_PIPE ] &&"
      " echo columns $LOCKSTEP_TERMINAL; exit 0; }; printf \"\\r33%%\"; until [ -e $DONE.2 ]; do "
      "sleep 0.01; done; printf \"\\r99%%\\n\"'";
  Launched run({"/usr/bin/script", "-qefc", command, "/dev/null"},
               {{"DONE", folder.path() + "/done"}, {"NO_COLOR", "1"}});
  EXPECT_TRUE(run.wait_for("\r\x1b[K[0] 33%")) << run.out();
  std::ofstream(folder.path() + "/done").flush();
  EXPECT_TRUE(run.wait_for("\r\x1b[K[1] columns ")) << run.out();
  EXPECT_TRUE(run.wait_for("[0] 33%", 2)) << "drawn again below the line: " << run.out();
  std::ofstream(folder.path() + "/done.2").flush();
  EXPECT_EQ(run.wait(), 0);
  EXPECT_TRUE(has(run.out(), "\r\x1b[K[0] 99%")) << run.out();
  EXPECT_TRUE(has(run.out(), "columns 7") || has(run.out(), "columns 2")) << run.out();
}

TEST(Run, FilterKeepsOtherRanksOffTheConsole) {
  Launched run(shell(3, "echo out $RANK", {"--local_ranks_filter", "0,2"}));
  EXPECT_EQ(run.wait(), 0);
  EXPECT_FALSE(has(run.out(), "[1]"));
  EXPECT_EQ(lines_of(run.out()).size(), 2U);
}

struct BadCall {
  std::vector<std::string> words;
  int code;
  std::string said;
};

TEST(Run, BadCallsSayWhatIsWrong) {
  const UniqueFd taken = tcp_listen("127.0.0.1", 0);
  const BadCall calls[] = {
      {{"run", "--nproc_per_nod", "2", "true"}, 2, "did you mean '--nproc_per_node'"},
      {{"run", "--nproc_per_node", "0", "true"}, 2, "--nproc_per_node: '0'"},
      {{"run", "--nnodes", "2", "--node_rank", "2", "true"}, 2, "--node_rank 2"},
      {{"run", "--max_restarts", "-1", "true"}, 2, "--max_restarts"},
      {{"run"}, 2, "no program given"},
      {{"run", "--master_port", std::to_string(local_port(taken.get())), "true"},
       2,
       "already in use"},
      {{"run", "no-such-program"}, 127, "no-such-program is not in PATH"},
      {{"run", "/no/such"}, 127, "/no/such does not exist"},
      {{"run", "/etc/passwd"}, 126, "not executable"},
      {{"run", "/etc"}, 126, "not a file"},
      {{"runn"}, 2, "did you mean 'run'"},
  };
  for (const BadCall& call : calls) {
    SCOPED_TRACE(call.said);
    Launched run(call.words);
    EXPECT_EQ(run.wait(), call.code);
    EXPECT_TRUE(has(run.err(), call.said)) << run.err();
    EXPECT_EQ(lines_of(run.err()).size(), 1U) << run.err();
    EXPECT_EQ(run.out(), "");
  }
}

TEST(Run, FindsProgramsBesideItselfAfterThoseInPath) {
  const std::map<std::string, std::string> variables = {{"PATH", "/usr/bin:/bin"}};
  Launched beside({"run", "--nproc_per_node", "2", "--", "lockstep", "version"}, variables);
  EXPECT_EQ(beside.wait(), 0) << beside.err();
  EXPECT_TRUE(has(beside.out(), "[1] lockstep ")) << beside.out();

  const Folder folder;
  const std::string path = folder.path() + "/lockstep";
  std::ofstream(path) << "#!/bin/sh\necho the one in PATH\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  Launched first({"run", "--", "lockstep", "version"}, {{"PATH", folder.path()}});
  EXPECT_EQ(first.wait(), 0) << first.err();
  EXPECT_TRUE(has(first.out(), "the one in PATH")) << first.out();
}

TEST(Run, AProgramThatCannotBeExecutedIsSaidOnce) {
  const Folder folder;
  const std::string path = folder.path() + "/script";
  std::ofstream(path) << "not a program\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  Launched run({"run", "--nproc_per_node", "2", path});
  EXPECT_EQ(run.wait(), 126);
  EXPECT_TRUE(has(run.err(), "Exec format error")) << run.err();
}

}  // namespace
}  // namespace lockstep::testing
