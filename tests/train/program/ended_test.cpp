// Runs that a signal or a closed terminal ends.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <regex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/literals.h"
#include "lockstep/deadline.h"
#include "tests/support/held_port.h"
#include "tests/support/read_metrics.h"
#include "tests/train/program/program.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// Programs that run until a signal ends them.
class EndlessProgram : public Program {
 protected:
  /// Becomes `lockstep ARGS train OPTIONS ...`, in this test's folder. Call it in a forked process.
  [[noreturn]] void become(std::vector<std::string> args,
                           const std::vector<std::string>& options = {}) const {
    args.insert(args.begin(), lockstep_program());
    args.emplace_back("train");
    args.insert(args.end(), options.begin(), options.end());
    args.insert(args.end(), {"-c", "c.yaml", "-o", "scheduler.num_epochs=10000",
                             "system.val_while_train=False"});
    std::vector<char*> words;
    for (auto& arg : args) words.push_back(arg.data());
    words.push_back(nullptr);
    if (chdir(folder_.path().c_str()) != 0) _exit(99);
    execv(words[0], words.data());
    _exit(127);
  }
  /// `on_hangup`: SIG_DFL or SIG_IGN, independent of this test's own handler. `host`: its assumed
  /// host, whose output is in files of its own; empty: this one.
  pid_t start(const std::vector<std::string>& args, sighandler_t on_hangup,
              const std::string& host = "", const std::vector<std::string>& options = {}) const {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    ::signal(SIGHUP, on_hangup);
    if (!host.empty()) ::setenv("LOCKSTEP_HOST_ID", host.c_str(), 1);
    if (std::freopen((folder_ / (host + "stdout.txt")).c_str(), "w", stdout) == nullptr) _exit(98);
    if (std::freopen((folder_ / (host + "stderr.txt")).c_str(), "w", stderr) == nullptr) _exit(97);
    become(args, options);
  }
  /// An agent of an elastic job of up to two hosts. The first one serves the endpoint for both.
  pid_t start_agent(const testing::HeldPort& port, const std::string& host,
                    const std::vector<std::string>& options = {}) const {
    return start({"run", "--nnodes", "1:2", "--rdzv_backend", "c10d", "--rdzv_endpoint",
                  "127.0.0.1:" + std::to_string(port.number()), "--rdzv_conf",
                  "last_call_timeout=0,keep_alive_max_attempt=50", "--", lockstep_program()},
                 SIG_DFL, host, options);
  }
  /// Waits until its metrics exceed `bytes`. Returns their size.
  size_t wait_for_steps(size_t bytes = 0) const {
    const auto deadline = Deadline::after(60s);
    while (!deadline.passed() && (!fs::exists(metrics()) || fs::file_size(metrics()) <= bytes)) {
      std::this_thread::sleep_for(20ms);
    }
    return fs::file_size(metrics());
  }
  /// The step in a line of rank 0's log, once it exceeds `after`; 0 on timeout.
  int64_t step_said(const std::string& pattern, int64_t after) const {
    const auto deadline = Deadline::after(60s);
    for (; !deadline.passed(); std::this_thread::sleep_for(20ms)) {
      const auto log = fs::exists(log_file()) ? read_file(log_file()) : "";
      const std::regex line(pattern);
      for (std::sregex_iterator at(log.begin(), log.end(), line), end; at != end; ++at) {
        if (const int64_t step = std::stoll((*at)[1]); step > after) return step;
      }
    }
    return 0;
  }
  static int exit_code_of(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  fs::path metrics() const { return folder_ / "out/metrics.jsonl"; }
  fs::path log_file() const { return folder_ / "out/log_0.txt"; }
  void expect_last_step_is_saved() const {
    EXPECT_EQ(fs::read_symlink(folder_ / "out/latest").string(),
              fmt::format("step_{:06}", read_metrics(metrics()).back().step));
  }
};

class ProgramEndedBy : public EndlessProgram,
                       public ::testing::WithParamInterface<std::pair<int, int>> {};
INSTANTIATE_TEST_SUITE_P(Signals, ProgramEndedBy,
                         ::testing::Values(std::pair{SIGTERM, 143}, std::pair{SIGINT, 130},
                                           std::pair{SIGHUP, 129}));

TEST_P(ProgramEndedBy, FinishesTheStepAndSaves) {
  const auto [signal, exit_code] = GetParam();
  const pid_t pid = start({"run", "--nproc_per_node", "2", "--", lockstep_program()}, SIG_DFL);
  wait_for_steps();
  kill(pid, signal);
  EXPECT_EQ(exit_code_of(pid), exit_code) << bytes("stderr.txt");
  expect_last_step_is_saved();
  const auto step = read_metrics(metrics()).back().step;
  EXPECT_NE(bytes("out/log_1.txt").find("lockstep.train"), std::string::npos);
  const auto more = train("-o model.resume=True system.val_while_train=False train.max_steps=" +
                              std::to_string(step + 1) + " scheduler.num_epochs=10000",
                          2);
  EXPECT_EQ(more.status, 0) << more.err;
  EXPECT_EQ(read_metrics(metrics()).back().step, step + 1);
}

// Batch systems send it some time before they end a job.
TEST_F(EndlessProgram, SavesAndGoesOnAfterSigusr1) {
  const pid_t pid = start({"run", "--nproc_per_node", "2", "--", lockstep_program()}, SIG_DFL);
  wait_for_steps();
  int64_t last = 0;
  for (int round = 0; round < 2; ++round) {
    kill(pid, SIGUSR1);
    const auto saved = step_said("SIGUSR1: checkpoint saved after step ([0-9]+)\n", last);
    ASSERT_GT(saved, last) << bytes("out/log_0.txt") << bytes("stderr.txt");
    bool is_told = false;
    for (const auto& event : read_metrics(folder_ / "out/events.jsonl")) {
      is_told = is_told || (event.kind == "checkpoint" && event.step == saved);
    }
    EXPECT_TRUE(is_told) << saved;
    last = saved;
  }
  wait_for_steps(fs::file_size(metrics()));
  kill(pid, SIGTERM);
  EXPECT_EQ(exit_code_of(pid), 143) << bytes("stderr.txt");
  expect_last_step_is_saved();
}

TEST_F(EndlessProgram, AChangeOfMembershipIsNoEnd) {
  const testing::HeldPort port;
  const pid_t first = start_agent(port, "a");
  wait_for_steps();
  const pid_t second = start_agent(port, "b");
  EXPECT_GT(step_said("Resume train from epoch: [0-9]+, step: ([0-9]+)", 0), 0)
      << bytes("out/log_0.txt") << bytes("astderr.txt");
  const auto log = bytes("out/log_0.txt");
  EXPECT_EQ(log.find("Next: "), std::string::npos) << log;
  EXPECT_EQ(log.find("SIGTERM"), std::string::npos) << log;
  EXPECT_TRUE(std::regex_search(
      log, std::regex("Stopped after step [0-9]+, checkpoint saved: hosts joined or left this job. "
                      "The job continues with other hosts\n")))
      << log;
  std::vector<std::string> ends;
  for (const auto& event : read_metrics(folder_ / "out/events.jsonl")) {
    if (event.kind == "end") ends.push_back(event.text("reason").value_or(""));
  }
  EXPECT_EQ(ends, std::vector<std::string>{"membership"});
  for (const pid_t pid : {second, first}) kill(pid, SIGTERM);
  for (const pid_t pid : {second, first}) EXPECT_EQ(exit_code_of(pid), 143);
}

// A search of one rank tells nothing of the two that go on.
TEST_F(EndlessProgram, ASearchForARateBeginsAnewWithTheHostsOfAGrownJob) {
  const testing::HeldPort port;
  const auto output = [&] {
    std::string all;
    for (const char* file : {"astdout.txt", "astderr.txt", "bstdout.txt", "bstderr.txt"}) {
      if (fs::exists(folder_ / file)) all += bytes(file);
    }
    return all;
  };
  const auto expect_said = [&](const char* text, int count) {
    const auto deadline = Deadline::after(60s);
    while (!deadline.passed() && text_count(output(), text) < count) {
      std::this_thread::sleep_for(20ms);
    }
    EXPECT_EQ(text_count(output(), text), count) << output();
  };
  const std::vector<std::string> endless = {"--find_lr", "1000000"};
  const pid_t first = start_agent(port, "a", endless);
  expect_said("searching for a learning rate", 1);
  const pid_t second = start_agent(port, "b", endless);
  expect_said("the search begins anew with the present ones", 1);
  expect_said("searching for a learning rate", 2);
  EXPECT_EQ(output().find("uggestion"), std::string::npos) << output();
  for (const pid_t pid : {second, first}) kill(pid, SIGTERM);
  for (const pid_t pid : {second, first}) EXPECT_EQ(exit_code_of(pid), 143) << output();
  EXPECT_FALSE(fs::exists(folder_ / "out")) << "a search leaves the folder of results alone";
}

class ProgramOnATerminal : public EndlessProgram, public ::testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, ProgramOnATerminal, ::testing::Values(1, 2));

TEST_P(ProgramOnATerminal, SavesWhenThatIsClosed) {
  int terminal = -1;
  const pid_t pid = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (pid == 0) {
    ::signal(SIGHUP, SIG_DFL);
    if (GetParam() == 1) become({});
    become({"run", "--nproc_per_node", "2", "--", lockstep_program()});
  }
  std::thread reader([&] {  // without a reader a terminal fills up
    char bytes[4096];
    while (read(terminal, bytes, sizeof bytes) > 0 && !fs::exists(metrics())) continue;
  });
  wait_for_steps();
  reader.join();
  close(terminal);
  EXPECT_EQ(exit_code_of(pid), 129) << bytes("out/log_0.txt");
  expect_last_step_is_saved();
  EXPECT_NE(bytes("out/log_0.txt").find("SIGHUP: stopped after step"), std::string::npos);
}

TEST_F(EndlessProgram, GoesOnUnderNohupWhenTheTerminalIsClosed) {
  const pid_t pid = start({}, SIG_IGN);
  const auto bytes_then = wait_for_steps();
  kill(pid, SIGHUP);
  const auto bytes_later = wait_for_steps(bytes_then);  // of the current step
  wait_for_steps(bytes_later);
  kill(pid, SIGTERM);
  EXPECT_EQ(exit_code_of(pid), 143) << bytes("stderr.txt");
  expect_last_step_is_saved();
}

}  // namespace
}  // namespace lockstep
