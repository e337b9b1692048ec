// lockstep ps, stop and logs, and the console's lines of many ranks, end to end.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "lockstep/base/unique_fd.h"
#include "lockstep/deadline.h"
#include "lockstep/error.h"
#include "lockstep/launch/job/host_resources.h"
#include "lockstep/launch/jobs/registry.h"
#include "tests/launch/launched.h"
#include "tests/support/temp_folder.h"

namespace lockstep::testing {
namespace {

using namespace std::chrono_literals;
using Words = std::vector<std::string>;

constexpr char kStay[] = "echo ready; exec sleep 600";

bool until(const std::function<bool()>& done) {
  const auto deadline = Deadline::after(60s);
  while (!done() && !deadline.passed()) std::this_thread::sleep_for(10ms);
  return done();
}

bool is_stopped(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  std::getline(file, stat);  // fails, but throws nothing, if the process ends meanwhile
  return stat.find(") T ") != std::string::npos;
}

/// A list of jobs for this test alone.
class Jobs : public ::testing::Test {
 protected:
  std::map<std::string, std::string> variables() const {
    const std::string folder = folder_.path().string();
    return {{"LOCKSTEP_JOBS_DIR", folder + "/jobs"}, {"XDG_RUNTIME_DIR", folder}};
  }
  /// "run --nproc_per_node N --rdzv_id ID OPTIONS -- sh -c SCRIPT".
  Words shell(int ranks, const std::string& id, const std::string& script,
              const Words& options = {}) const {
    Words words = {"run", "--nproc_per_node", std::to_string(ranks), "--rdzv_id", id};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "/bin/sh", "-c", script});
    return words;
  }
  std::string said(const Words& words, int code = 0) const {
    Launched verb(words, variables());
    EXPECT_EQ(verb.wait(), code) << verb.err();
    return verb.out() + verb.err();
  }
  /// Polls until `ps` lists so many jobs: a job is listed once its workers run.
  nlohmann::json listed(size_t count) const {
    const auto deadline = Deadline::after(60s);
    nlohmann::json list;
    do {
      list = nlohmann::json::parse(said({"ps", "--json"}));
    } while (list.size() != count && !deadline.passed());
    EXPECT_EQ(list.size(), count);
    return list;
  }
  /// Whether list and error files are gone, apart from the records of past runs.
  bool nothing_is_left() const {
    std::filesystem::remove_all(folder_ / "jobs/past");
    std::error_code other_files;
    std::filesystem::remove(folder_ / "jobs", other_files);
    return std::filesystem::is_empty(folder_.path());
  }

  TempFolder folder_;
};

TEST_F(Jobs, WordsThatAVerbDoesNotTakeAreRefused) {
  const auto expect_refused = [&](const Words& words, const std::string& why) {
    Launched verb(words, variables());
    EXPECT_EQ(verb.wait(), 2) << verb.out();
    EXPECT_TRUE(has(verb.err(), why)) << verb.err();
    EXPECT_EQ(verb.out(), "");
  };
  expect_refused({"ps", "foo"},
                 "lockstep ps: error: unexpected word 'foo' (there are: --all, --json");
  expect_refused({"ps", "jsn"}, "did you mean '--json'?");
  expect_refused({"version", "foo"},
                 "lockstep version: error: unexpected word 'foo'; it takes none");
  expect_refused({"--version", "--json"}, "lockstep version: error: unexpected word '--json'");
  expect_refused({"help", "--json"},
                 "lockstep help: error: unexpected word '--json'; write lockstep help");
  expect_refused({"help", "run", "foo"}, "lockstep help: error: unexpected word 'foo'");
}

TEST_F(Jobs, ALevelOfLinesThatThereIsNotIsRefused) {
  auto wrong = variables();
  wrong["LOCKSTEP_LOG_LEVEL"] = "warm";
  Launched verb({"ps"}, wrong);
  EXPECT_EQ(verb.wait(), 2) << verb.out();
  EXPECT_TRUE(has(verb.err(),
                  "variable LOCKSTEP_LOG_LEVEL: 'warm' is not one of debug, info, warn, "
                  "error, did you mean 'warn'?"))
      << verb.err();
}

TEST_F(Jobs, PsShowsWhatRunsAndStopEndsIt) {
  Launched one(shell(2, "one", kStay), variables());
  Launched two(shell(1, "two", kStay), variables());
  const auto list = listed(2);
  EXPECT_EQ(list[0]["pid"].get<int>() + list[1]["pid"].get<int>(), one.pid() + two.pid());
  const auto table = lines_of(said({"ps"}));
  ASSERT_EQ(table.size(), 3U);
  const size_t column = table[0].find("COMMAND");
  EXPECT_EQ(table[1].find("/bin/sh"), column);
  EXPECT_EQ(table[2].find("/bin/sh"), column);

  EXPECT_TRUE(has(said({"stop", "on"}), "one (process "));
  EXPECT_EQ(one.wait(), 143);
  EXPECT_TRUE(has(said({"stop", std::to_string(two.pid())}), "has ended"));
  EXPECT_EQ(two.wait(), 143);
  EXPECT_EQ(listed(0).size(), 0U);
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(Jobs, StopWithoutAnIdListsThemAndEndsNone) {
  Launched one(shell(1, "one", kStay), variables());
  ASSERT_TRUE(one.wait_for("ready"));
  listed(1);
  const std::string refusal = said({"stop"}, 2);
  EXPECT_TRUE(has(refusal, "say which job, by its RUN or PID ('lockstep stop ")) << refusal;
  EXPECT_TRUE(has(refusal, " " + std::to_string(one.pid()) + " ")) << refusal;
  EXPECT_EQ(listed(1).size(), 1U) << "it still runs";
  EXPECT_TRUE(has(said({"stop", "one"}), "one (process "));
  EXPECT_EQ(one.wait(), 143);
}

TEST_F(Jobs, AKilledAgentLeavesNothingInTheList) {
  Launched run(shell(2, "one", kStay), variables());
  listed(1);
  EXPECT_TRUE(has(said({"stop", "--kill", "one"}), "has ended"));
  EXPECT_EQ(run.wait(), 137);
  EXPECT_TRUE(run.wait_all_gone());  // the watchdog too, which removes its entry
  EXPECT_TRUE(nothing_is_left());
}

// mkdir makes folders that others may read.
TEST_F(Jobs, AFolderThatWasThereIsTakenUnlessOthersCanWriteToIt) {
  namespace fs = std::filesystem;
  fs::create_directory(folder_ / "jobs");
  fs::permissions(folder_ / "jobs", fs::perms(0755));
  Launched one(shell(1, "one", kStay), variables());
  listed(1);
  fs::permissions(folder_ / "jobs", fs::perms(0775));
  listed(0);
  fs::permissions(folder_ / "jobs", fs::perms(0755));
  EXPECT_TRUE(has(said({"stop", "one"}), "has ended"));
  EXPECT_EQ(one.wait(), 143);
}

// A listing removes the folder if all its jobs have ended, possibly just as another job makes it.
TEST_F(Jobs, OneThatBeginsWhileOthersLookIsListed) {
  const std::vector<std::string> registries = {variables().at("LOCKSTEP_JOBS_DIR")};
  std::atomic<bool> looking = true;
  std::thread other([&] {
    while (looking) list_jobs(registries);
  });
  int not_listed = 0;
  for (int i = 0; i < 5000; ++i) {
    JobFile file(registries);
    file.write(JobEntry{});
    not_listed += file.written() ? 0 : 1;
  }
  looking = false;
  other.join();
  EXPECT_EQ(not_listed, 0);
}

/// Whether the process does not block the signal, so that it is handled or ends the process.
bool has_unblocked(pid_t pid, int signal) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("SigBlk:", 0) != 0) continue;
    return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) == 0;
  }
  return false;
}

TEST_F(Jobs, ASignalWhileNobodyReadsTheLastLinesLeavesNothing) {
  const auto pipe = (folder_ / "console").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const UniqueFd unread(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const auto go = (folder_ / "go").string();
  // More than a pipe holds, but less than the agent keeps.
  const std::string script = "until [ -e " + go + " ]; do sleep 0.01; done; seq 20000";
  Words words = {"/bin/sh", "-c", "exec \"$0\" \"$@\" >" + pipe, built_program("lockstep")};
  for (const auto& word : shell(1, "one", script)) words.push_back(word);
  Launched run(words, variables());
  listed(1);
  std::ofstream(go).flush();
  ASSERT_TRUE(until([&] { return has_unblocked(run.pid(), SIGTERM); }));
  run.send(SIGTERM);
  EXPECT_EQ(run.wait(), 128 + SIGTERM);
  std::filesystem::remove(pipe);
  std::filesystem::remove(go);
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(Jobs, LogsShowsWhatWasWrittenOfTheRanksAskedFor) {
  Launched run(shell(3, "one", "echo out $RANK; echo err $RANK >&2; echo ready; exec sleep 600",
                     {"--log_dir", (folder_ / "logs").string()}),
               variables());
  ASSERT_TRUE(run.wait_for("err ", 3));
  ASSERT_TRUE(run.wait_for("ready"));
  listed(1);
  EXPECT_TRUE(until([&] { return lines_of(said({"logs", "one"})).size() == 9; }));
  EXPECT_EQ(said({"logs", "--rank", "1"}), "[1] out 1\n[1] ready\n[1] err 1\n");
  EXPECT_EQ(said({"logs", "--rank", "2", "--tail", "1"}), "[2] err 2\n");
  Launched follow({"logs", "-f", "--rank=0"}, variables());
  EXPECT_TRUE(follow.wait_for("err 0"));
  run.send(SIGTERM);
  EXPECT_EQ(follow.wait(), 0) << "it ends with the job";
  EXPECT_EQ(run.wait(), 143);
}

TEST_F(Jobs, PsShowsHowFarAJobIs) {
  Launched run({"run", "--nproc_per_node", "2", "--rdzv_id", "one", "--",
                built_program("restarted_worker"), "figures", "0", "0"},
               variables());
  ASSERT_TRUE(run.wait_for("reported", 2)) << run.err();
  const auto job = listed(1)[0];
  EXPECT_EQ(job["step"], 812);
  EXPECT_EQ(job["total_steps"], 5000);
  EXPECT_EQ(job["loss"], 1.25);
  const auto table = lines_of(said({"ps"}));
  ASSERT_EQ(table.size(), 2U);
  EXPECT_TRUE(has(table[0], "STEP")) << table[0];
  EXPECT_TRUE(has(table[1], "812/5000 16 %  1.25  7:20  slow")) << table[1];
  run.send(SIGTERM);
  EXPECT_EQ(run.wait(), 143);
}

TEST_F(Jobs, TheIdOfARunThatIsOverFindsItsFiles) {
  const auto logs = (folder_ / "logs").string();
  for (const char* word : {"first", "second"}) {
    Launched run(shell(2, "night", std::string("echo ") + word + " $RANK", {"--log_dir", logs}),
                 variables());
    EXPECT_EQ(run.wait(), 0);
  }
  EXPECT_EQ(said({"logs", "night"}), "[0] second 0\n[1] second 1\n") << "the newest by that name";
  EXPECT_EQ(said({"logs", "nig", "-f", "--rank", "1"}), "[1] second 1\n");
  EXPECT_TRUE(has(said({"logs", "day"}, 2), "no job of this user runs on this host"));
  EXPECT_TRUE(has(said({"inspect", "night"}, 2), "no rank there has made a process group yet"));
  EXPECT_TRUE(has(said({"inspect", "day"}, 2), "nor the ID of a run that runs here"));
  Launched killed(shell(1, "dawn", kStay, {"--log_dir", logs}), variables());
  ASSERT_TRUE(killed.wait_for("ready"));
  listed(1);
  await_records(folder_ / "jobs/past", 3);
  EXPECT_TRUE(has(said({"stop", "--kill", "dawn"}), "has ended"));
  EXPECT_EQ(killed.wait(), 137);
  EXPECT_EQ(said({"logs", "dawn"}), "[0] ready\n");
}

// If nodes come and go, ranks change.
TEST_F(Jobs, LogsThatAreFollowedThroughARestartNameTheRanksOfNow) {
  const auto attempt = [&](const std::string& name) {
    const auto folder = folder_.path() / name;
    std::filesystem::create_directories(folder / "0");
    std::ofstream(folder / "0" / "stdout.log") << name << "\n";
    return folder.string();
  };
  JobEntry entry;  // this program is the agent
  entry.pid = ::getpid();
  entry.run_id = "one";
  entry.num_nodes = entry.local_size = 1;
  entry.log_folder = folder_.path().string();
  entry.attempt_folder = attempt("first");
  entry.first_rank = 1;
  entry.world_size = 2;
  JobFile file({variables().at("LOCKSTEP_JOBS_DIR")});
  file.write(entry);
  Launched follow({"logs", "-f"}, variables());
  EXPECT_TRUE(follow.wait_for("[1] first")) << follow.out();
  entry.attempt_folder = attempt("second");
  entry.first_rank = 0;
  entry.world_size = 1;
  file.write(entry);
  EXPECT_TRUE(follow.wait_for("[0] second")) << follow.out();
}

TEST_F(Jobs, LogsWithoutFilesSaysHowToGetThem) {
  Launched run(shell(1, "one", kStay), variables());
  listed(1);
  EXPECT_TRUE(has(said({"logs"}, 2), "start it with --log_dir"));
  run.send(SIGTERM);
  EXPECT_EQ(run.wait(), 143);
}

TEST_F(Jobs, IdenticalLinesOfManyRanksAreOne) {
  // The agent is stopped while they print: it finds all lines at once, however slow the ranks are.
  const TempFolder marks;
  const std::string script =
      "cd " + marks.path().string() +
      "; : >here.$RANK; until [ -e print ]; do sleep 0.02; done; echo the same; echo rank $RANK; "
      ": >printed.$RANK; until [ -e end ]; do sleep 0.02; done";
  const auto all_did = [&](const std::string& what) {
    return until([&] {
      int there = 0;
      for (int rank = 0; rank < 4; ++rank)
        there += std::filesystem::exists(marks / (what + "." + std::to_string(rank))) ? 1 : 0;
      return there == 4;
    });
  };
  Launched run(shell(4, "one", script), variables());
  ASSERT_TRUE(all_did("here"));
  run.send(SIGSTOP);
  ASSERT_TRUE(until([&] { return is_stopped(run.pid()); }));
  std::ofstream(marks / "print").flush();
  ASSERT_TRUE(all_did("printed"));
  run.send(SIGCONT);
  EXPECT_TRUE(run.wait_for("rank ", 4));
  std::ofstream(marks / "end").flush();
  EXPECT_EQ(run.wait(), 0);
  const auto lines = lines_of(run.out());
  ASSERT_EQ(lines.size(), 5U) << run.out();
  EXPECT_EQ(lines[0], "[0-3] the same");
  for (int rank = 0; rank < 4; ++rank) {
    const auto own = "[" + std::to_string(rank) + "] rank " + std::to_string(rank);
    EXPECT_TRUE(has(run.out(), own + "\n")) << run.out();
  }
  Launched plain(shell(4, "one", script, {"--no_fold"}), variables());
  EXPECT_EQ(plain.wait(), 0);
  EXPECT_EQ(lines_of(plain.out()).size(), 8U);
}

TEST_F(Jobs, ARankThatPrintsTooMuchIsLimitedAndItsFileIsWhole) {
  Launched run(
      shell(1, "one", "seq 5000", {"--log_dir", (folder_ / "logs").string(), "--log_rate", "100"}),
      variables());
  EXPECT_EQ(run.wait(), 0);
  EXPECT_LT(lines_of(run.out()).size(), 5000U);
  EXPECT_GE(lines_of(run.out()).size(), 100U);
  EXPECT_TRUE(has(run.err(), "of this rank not shown")) << run.err();
  std::ifstream file(folder_ / "logs/one/attempt_0/0/stdout.log");
  EXPECT_EQ(std::count(std::istreambuf_iterator<char>(file), {}, '\n'), 5000);
}

TEST_F(Jobs, AWorkersOwnWordsAreTheCauseWithoutAnyLogFolder) {
  const std::string fail =
      R"(echo '{"message": "disk of shard 7 is gone"}' > $TORCHELASTIC_ERROR_FILE; exit 9)";
  Launched run(shell(1, "one", fail), variables());
  EXPECT_EQ(run.wait(), 9);
  EXPECT_TRUE(has(run.err(), "exit code 9")) << run.err();
  EXPECT_TRUE(has(run.err(), "\n  disk of shard 7 is gone\n")) << run.err();
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(Jobs, DevNullAsLogFolderMeansNoFilesAtAll) {
  Launched run(shell(1, "one", "echo \"[$TORCHELASTIC_ERROR_FILE]\"", {"--log_dir", "/dev/null"}),
               variables());
  EXPECT_EQ(run.wait(), 0);
  EXPECT_EQ(run.out(), "[]\n");
}

TEST_F(Jobs, RedirectedOutputWithoutAFolderGoesToANewOneThatIsNamed) {
  auto with_tmp = variables();
  with_tmp["TMPDIR"] = folder_.path().string();
  Launched run(shell(1, "one", "echo text", {"--redirects", "1"}), with_tmp);
  EXPECT_EQ(run.wait(), 0);
  EXPECT_EQ(run.out(), "");
  const size_t at = run.err().find(folder_.path().string());
  ASSERT_NE(at, std::string::npos) << run.err();
  const auto made = run.err().substr(at, run.err().find_first_of(" \n", at) - at);
  EXPECT_TRUE(std::filesystem::exists(made + "/one/attempt_0/0/stdout.log")) << made;
}

TEST_F(Jobs, SignalsToHandleEndTheJobAndOthersAreTheAgentsOwn) {
  // The signal does not end the worker, so the agent must.
  const char* script = "trap : USR1; echo ready; while :; do sleep 0.1; done";
  Launched run(
      shell(1, "one", script, {"--signals_to_handle", "SIGTERM,USR1", "--shutdown_timeout", "0.1"}),
      variables());
  ASSERT_TRUE(run.wait_for("ready"));
  run.send(SIGUSR1);
  EXPECT_EQ(run.wait(), 128 + SIGUSR1);
}

/// The ranks' CPUs as --numa_binding exclusive assigns them here; nothing if there are too few
/// cores.
std::vector<std::vector<int>> shares(int ranks) {
  try {
    return cpus_of_ranks(read_cpu_topology("", usable_cpus(), {}), CoreBinding::kExclusive, ranks);
  } catch (const Error&) {
    return {};
  }
}

TEST_F(Jobs, RanksAreBoundToTheirCores) {
  const std::string script =
      "echo $LOCKSTEP_CPUS is $(sed -n 's/^Cpus_allowed_list:.//p' /proc/self/status)";
  for (const int ranks : {1, 2}) {
    const auto expected = shares(ranks);
    Launched run(shell(ranks, "one", script, {"--numa_binding", "exclusive"}), variables());
    EXPECT_EQ(run.wait(), expected.empty() ? 2 : 0) << run.err();
    EXPECT_EQ(has(run.err(), "none of its own for each"), expected.empty()) << run.err();
    for (size_t rank = 0; rank < expected.size(); ++rank) {
      const auto list = cpu_list(expected[rank]);
      const auto prefix = ranks == 1 ? "" : "[" + std::to_string(rank) + "] ";
      EXPECT_TRUE(has("\n" + run.out(), "\n" + prefix + list + " is " + list + "\n")) << run.out();
    }
  }
}

TEST_F(Jobs, LinesThatAreLookedForAreAlsoInAFileOfAllRanks) {
  const std::string script = "echo apple $RANK; echo pear; echo an orange >&2; echo apple >&2";
  Launched run(shell(2, "one", script,
                     {"--log_dir", (folder_ / "logs").string(), "--duplicate_stdout_filters",
                      "apple,grape", "--duplicate_stderr_filters", "orange"}),
               variables());
  EXPECT_EQ(run.wait(), 0) << run.err();
  const auto copied = [&](const std::string& name) {
    std::ifstream file(folder_ / "logs/one/attempt_0" / name);
    std::set<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.insert(line);
    return lines;
  };
  EXPECT_EQ(copied("filtered_stdout.log"), (std::set<std::string>{"[0] apple 0", "[1] apple 1"}));
  EXPECT_EQ(copied("filtered_stderr.log"),
            (std::set<std::string>{"[0] an orange", "[1] an orange"}));
}

TEST_F(Jobs, VirtualLocalRanksSeeOneDeviceEach) {
  auto devices = variables();
  devices["CUDA_VISIBLE_DEVICES"] = "4,6";
  const std::string print = "echo $RANK $LOCAL_RANK $CUDA_VISIBLE_DEVICES";
  Launched run(shell(2, "one", print, {"--virtual_local_rank"}), devices);
  EXPECT_EQ(run.wait(), 0);
  EXPECT_TRUE(has(run.out(), "[0] 0 0 4")) << run.out();
  EXPECT_TRUE(has(run.out(), "[1] 1 0 6")) << run.out();
  Launched few(shell(3, "one", print, {"--virtual_local_rank"}), devices);
  EXPECT_EQ(few.wait(), 2);
  EXPECT_TRUE(has(few.err(), "has no device for local rank 2")) << few.err();
}

}  // namespace
}  // namespace lockstep::testing
