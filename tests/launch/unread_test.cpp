// Agents whose output is not read: a collector is stuck, or a terminal is paged.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>

#include "lockstep/base/socket.h"
#include "tests/launch/launched.h"
#include "tests/support/held_port.h"
#include "tests/support/temp_folder.h"

namespace lockstep::testing {
namespace {

using namespace std::chrono_literals;

/// A pipe or a terminal that is read only on request.
class UnreadEnd {
 public:
  /// A pipe at `path`, which is made; "": a terminal.
  explicit UnreadEnd(std::string path) : path_(std::move(path)) {
    if (path_.empty()) {
      open_terminal();
      return;
    }
    if (::mkfifo(path_.c_str(), 0600) != 0) throw std::runtime_error("mkfifo " + path_);
    end_.reset(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  }
  /// `words` of lockstep with both streams to it; `err`: file for standard error.
  std::vector<std::string> into(const std::vector<std::string>& words,
                                const std::string& err = "&1") const {
    std::vector<std::string> all = {"/bin/sh", "-c", "exec \"$0\" \"$@\" >" + path_ + " 2>" + err,
                                    built_program("lockstep")};
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }
  /// Whether no more bytes fit for 50 ms. A single look is not enough for a terminal: it takes no
  /// byte while another process is just writing, however much room is left.
  bool full() const {
    for (const auto deadline = Deadline::after(50ms); !deadline.passed();) {
      if (!takes_nothing()) return false;
      std::this_thread::sleep_for(2ms);
    }
    return true;
  }
  void read_away() const {
    char buffer[1 << 16];
    while (::read(end_.get(), buffer, sizeof buffer) > 0) {
    }
  }

 private:
  bool takes_nothing() const {
    const UniqueFd writer(::open(path_.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    // A terminal with room for one byte is writable, but a newline takes two.
    if (keep_) return ::write(writer.get(), "\n", 1) < 0 && errno == EAGAIN;
    pollfd item{writer.get(), POLLOUT, 0};
    return ::poll(&item, 1, 0) == 0;
  }
  void open_terminal() {
    end_.reset(::posix_openpt(O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    char name[64];
    if (::grantpt(end_.get()) != 0 || ::unlockpt(end_.get()) != 0 ||
        ::ptsname_r(end_.get(), name, sizeof name) != 0) {
      throw std::runtime_error("make a terminal");
    }
    path_ = name;
    keep_.reset(::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
  }

  std::string path_;
  UniqueFd end_;
  UniqueFd keep_;  ///< A terminal that is not open anywhere disappears.
};

/// With a pipe, and with a terminal.
class Unread : public ::testing::TestWithParam<const char*> {
 protected:
  std::string path() const { return *GetParam() == '\0' ? "" : folder_ / GetParam(); }
  const TempFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(Ends, Unread, ::testing::Values("pipe", ""),
                         [](const auto& each) { return each.index == 0 ? "Pipe" : "Terminal"; });

bool in_time(const std::function<bool()>& done) {
  for (const auto deadline = Deadline::after(60s); !done(); std::this_thread::sleep_for(5ms)) {
    if (deadline.passed()) return false;
  }
  return true;
}

void send_request(int port) {
  const UniqueFd fd = tcp_connect({"127.0.0.1", port}, Deadline::after(30s));
  const std::string request = "GET / HTTP/1.1\r\n\r\n";
  send_all(fd.get(), request.data(), request.size(), Deadline::after(30s), "agent");
  std::string bytes(1 << 16, ' ');
  // The connection is closed once the request has been handled.
  EXPECT_THROW(recv_all(fd.get(), bytes.data(), bytes.size(), Deadline::after(30s), "agent"),
               Error);
}

TEST_P(Unread, AStrangersRequestDoesNotEndTheJob) {
  const UnreadEnd end(path());
  const HeldPort port;
  const std::string go = folder_ / "go";
  const std::string worker =
      "[ $RANK = 1 ] || seq 30000; until [ -e " + go + " ]; do sleep 0.05; done";
  const auto words = [&](const std::string& rank) {
    return shell(1, worker,
                 {"--nnodes", "2", "--node_rank", rank, "--master_addr", "127.0.0.1",
                  "--master_port", std::to_string(port.number())});
  };
  Launched first(end.into(words("0")), {{"LOCKSTEP_HOST_ID", "a"}});
  Launched second(words("1"), {{"LOCKSTEP_HOST_ID", "b"}});
  ASSERT_TRUE(in_time([&] { return end.full(); }));
  send_request(port.number());
  std::ofstream(go).put('\n');
  EXPECT_EQ(second.wait(), 0) << second.err();
  EXPECT_TRUE(in_time([&] {
    end.read_away();
    return first.wait(0s) == 0;
  })) << "node 0's agent does not end once it is read";
}

TEST_P(Unread, WorkersThatDoNotEndAreKilledAllTheSame) {
  const UnreadEnd end(path());
  const std::string worker = "trap '' TERM; echo $$ >" + std::string(folder_ / "pid") +
                             "; seq 30000; while :; do sleep 0.05; done";
  // After 3 s the agent prints which ranks have not ended.
  Launched run(end.into(shell(1, worker, {"--shutdown_timeout", "3.2"})));
  ASSERT_TRUE(in_time([&] { return end.full(); }));
  pid_t pid = 0;
  std::ifstream(folder_ / "pid") >> pid;
  ASSERT_GT(pid, 0);
  run.send(SIGTERM);
  EXPECT_TRUE(in_time([&] { return ::kill(pid, 0) != 0; })) << "the worker lives on";
  // Its message is not read either; the agent must not wait for that.
  EXPECT_TRUE(in_time([&] {
    run.send(SIGINT);
    return run.wait(0s) == 128 + SIGINT;
  }));
}

TEST(LeftByItsReader, TheJobEndsAsAnyProgramDoes) {
  std::vector<std::string> words = {
      "/bin/sh", "-c", "{ \"$0\" \"$@\"; echo code $? >&2; } | head -1", built_program("lockstep")};
  // `lockstep train` ends so on SIGTERM.
  const auto run =
      shell(2, "trap 'exit 143' TERM; while :; do echo step; sleep 0.05; done", {"--no_fold"});
  words.insert(words.end(), run.begin(), run.end());
  Launched pipe(words);
  EXPECT_EQ(pipe.wait(), 0);
  EXPECT_TRUE(has(pipe.err(), "code 141\n")) << pipe.err();
  EXPECT_FALSE(has(pipe.err(), "lockstep")) << pipe.err();
}

// A batch system sends one SIGTERM, and waits for a fixed time.
TEST_P(Unread, OneSignalEndsAJobOfWhichMoreIsQueuedThanIsRead) {
  const UnreadEnd end(path());
  Launched both(end.into(shell(1, "seq 300000; exec sleep 600", {"--shutdown_timeout", "1"})));
  ASSERT_TRUE(in_time([&] { return end.full(); }));
  both.send(SIGTERM);
  EXPECT_EQ(both.wait(), 128 + SIGTERM);
}

TEST_P(Unread, HowMuchIsDroppedInTheEndIsSaid) {
  const UnreadEnd end(path());
  const std::string err = folder_ / "err";
  Launched run(end.into(shell(1, "seq 300000; exec sleep 600", {"--shutdown_timeout", "1"}), err));
  ASSERT_TRUE(in_time([&] { return end.full(); }));
  run.send(SIGTERM);
  EXPECT_EQ(run.wait(), 128 + SIGTERM);
  std::ifstream file(err);
  const std::string said(std::istreambuf_iterator<char>(file), {});
  EXPECT_TRUE(has(said, " of output were dropped: nobody read them")) << said;
}

}  // namespace
}  // namespace lockstep::testing
