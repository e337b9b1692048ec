// Ranks that prove by a real munged, started by this test, that they belong to one user.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <future>
#include <thread>
#include <vector>

#include "lockstep/base/auth.h"
#include "lockstep/base/file.h"
#include "lockstep/launch/agent/munge_secret.h"
#include "lockstep/world/bootstrap/exchange.h"
#include "lockstep/world/bootstrap/meet.h"
#include "lockstep/world/bootstrap/munge_library.h"
#include "tests/support/error_of.h"
#include "tests/support/held_port.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

/// munged with its own key and socket; libmunge uses the socket while this object lives.
class Munged {
 public:
  Munged() {
    write_file_atomically(folder_ / "key", make_job_secret() + make_job_secret());
    ::chmod(folder_.path().c_str(), 0755);  // another user must reach the socket
    start();
    ::setenv("LOCKSTEP_MUNGE_SOCKET", (folder_ / "socket").c_str(), 1);
    const auto soon = Deadline::after(std::chrono::seconds(30));
    while (!munge_answers() && !soon.passed())
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_TRUE(munge_answers()) << read_file(folder_ / "output", 1 << 20);
  }
  ~Munged() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::unsetenv("LOCKSTEP_MUNGE_SOCKET");
  }
  Munged(const Munged&) = delete;
  Munged& operator=(const Munged&) = delete;

 private:
  void start() {
    std::vector<std::string> words = {"munged", "--foreground", "--force"};
    for (const char* name : {"key", "socket", "pid", "seed", "log"}) {
      const std::string option =
          name == std::string("socket") ? "socket" : name + std::string("-file");
      words.push_back("--" + option + "=" + (folder_ / name).string());
    }
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const std::string output = (folder_ / "output").string();
    const std::string path = "/usr/sbin:/sbin:" + std::string(::getenv("PATH"));
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    const int fd = ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ::dup2(fd, STDOUT_FILENO);
    ::dup2(fd, STDERR_FILENO);
    ::setenv("PATH", path.c_str(), 1);  // a user's PATH may lack the folders of daemons
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }

  TempFolder folder_;
  pid_t pid_ = 0;
};

/// Whether a process of another user can read `credential`; 0 or 1 as its exit status.
int read_by_another_user(const std::string& credential) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(9);
    try {
      Munge::get().decode(credential);
      ::_exit(0);
    } catch (const Error& error) {
      ::_exit(error.code() == ErrorCode::kCorrupt ? 1 : 2);
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

TEST(Munge, ACredentialIsReadByItsUserAloneAsRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "root has two users; scripts/test.sh sees to it";
  const Munged munged;
  EXPECT_EQ(read_by_another_user(Munge::get().encode("hello")), 1);
}

TEST(Munge, ACredentialIsReadOnce) {
  const Munged munged;
  const std::string credential = Munge::get().encode("hello\nthere");
  EXPECT_EQ(credential.find_first_of(" \n"), std::string::npos);
  EXPECT_EQ(Munge::get().decode(credential), "hello\nthere");
  const auto again = error_of([&] { Munge::get().decode(credential); });
  EXPECT_EQ(again.code(), ErrorCode::kCorrupt);
  EXPECT_NE(std::string(again.what()).find("eplayed"), std::string::npos) << again.what();
  EXPECT_EQ(error_of([] { Munge::get().decode("nonsense"); }).code(), ErrorCode::kCorrupt);
}

TEST(Munge, WithoutADaemonThatIsSaid) {
  ::setenv("LOCKSTEP_MUNGE_SOCKET", "/nowhere/socket", 1);
  EXPECT_FALSE(munge_answers());
  const auto error = error_of([] { Munge::get().encode(""); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_NE(std::string(error.what()).find("/nowhere/socket"), std::string::npos) << error.what();
  EXPECT_NE(why_no_munge().find("/nowhere/socket"), std::string::npos) << why_no_munge();
  ::unsetenv("LOCKSTEP_MUNGE_SOCKET");
}

Identity rank_of_step(int rank) {
  Identity id;
  id.rank = rank;
  id.size = 3;
  id.job_id = "slurm-" + std::to_string(::getpid()) + ".0";
  id.master = {"127.0.0.1", 0};
  id.bootstrap = BootstrapMethod::kExchange;
  id.channels = {Channel::kMunge};
  return id;
}

TEST(Munge, RanksMeetThatHaveNoSecret) {
  const Munged munged;
  const auto soon = Deadline::after(std::chrono::seconds(60));
  const auto join = [&](int rank) {
    Identity id = rank_of_step(rank);
    const auto store = meet_by_exchange(open_exchange(id, {}), {"127.0.0.1"}, &id, soon);
    store->set("of " + std::to_string(rank), id.secret, soon);
    auto zeros = store->get("of 0", soon);
    EXPECT_EQ(zeros, id.secret);
    EXPECT_GE(id.secret.size(), 32U);
    store->wait(std::vector<std::string>{"of 0", "of 1", "of 2"}, soon);
    return zeros;
  };
  auto one = std::async(std::launch::async, join, 1);  // the others may come first
  auto two = std::async(std::launch::async, join, 2);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const std::string secret = join(0);
  EXPECT_EQ(one.get(), secret);
  EXPECT_EQ(two.get(), secret);
}

// Other servers at that place: another job of this user, a stranger with any answer, a silent one.
TEST(Munge, WhatIsNotThisJobsIsPassedByAndNamedAtTheEnd) {
  const Munged munged;
  const UniqueFd stranger = tcp_listen("127.0.0.1", 0);
  const UniqueFd silent = tcp_listen("127.0.0.1", 0);
  const int strange = local_port(stranger.get());
  auto talk = std::async(std::launch::async, [&] {
    const UniqueFd client = tcp_accept(stranger.get(), Deadline::after(std::chrono::seconds(30)));
    send_all(client.get(), "HTTP/1.1 200 OK\r\n", 17, Deadline::after(std::chrono::seconds(5)), "");
  });
  const auto exchange =
      open_munge_exchange("127.0.0.1", {strange, local_port(silent.get())}, "job");
  const auto late =
      error_of([&] { exchange->receive(Deadline::after(std::chrono::milliseconds(500))); });
  EXPECT_EQ(late.code(), ErrorCode::kTimeout);
  EXPECT_NE(std::string(late.what()).find("127.0.0.1:" + std::to_string(strange)),
            std::string::npos)
      << late.what();
  talk.get();
}

TEST(Munge, WhatStandsInTheWayIsSaidAtTheEnd) {
  const auto late = [](const std::string& host, int port) {
    const auto exchange = open_munge_exchange(host, {port}, "job");
    const auto error =
        error_of([&] { exchange->receive(Deadline::after(std::chrono::seconds(1))); });
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
    return std::string(error.what());
  };
  const std::string unknown = late("no-such-host.invalid", 1);
  EXPECT_NE(unknown.find("no-such-host.invalid:1: "), std::string::npos) << unknown;
  ::setenv("LOCKSTEP_MUNGE_SOCKET", "/nowhere/socket", 1);
  const UniqueFd listener = tcp_listen("127.0.0.1", 0);
  auto talk = std::async(std::launch::async, [&] {
    const UniqueFd client = tcp_accept(listener.get(), Deadline::after(std::chrono::seconds(30)));
    send_all(client.get(), "MUNGE:x\n", 8, Deadline::after(std::chrono::seconds(5)), "");
  });
  const std::string no_daemon = late("127.0.0.1", local_port(listener.get()));
  EXPECT_NE(no_daemon.find("munge: "), std::string::npos) << no_daemon;
  talk.get();
  ::unsetenv("LOCKSTEP_MUNGE_SOCKET");
}

TEST(Munge, JobsOfOneUserAreToldApart) {
  const Munged munged;
  const testing::HeldPort held;
  const int port = held.number();
  const auto soon = Deadline::after(std::chrono::seconds(30));
  const auto first = open_munge_exchange("127.0.0.1", {port, port + 1}, "first");
  first->publish("line", soon);
  EXPECT_EQ(open_munge_exchange("127.0.0.1", {port, port + 1}, "first")->receive(soon), "line");
  const auto other = error_of([&] {
    open_munge_exchange("127.0.0.1", {port}, "other")
        ->receive(Deadline::after(std::chrono::seconds(2)));
  });
  EXPECT_NE(std::string(other.what()).find("another job of this user"), std::string::npos)
      << other.what();
}

TEST(Munge, AgentsOfAStepGetASecret) {
  const Munged munged;
  const auto soon = Deadline::after(std::chrono::seconds(60));
  Identity step = rank_of_step(0);
  step.size = 2;
  RunOptions options;
  options.master_addr = "127.0.0.1";
  options.master_port = 29500;
  options.node_rank = 1;
  auto other = std::async(std::launch::async, [&] { return secret_by_munge(step, options, soon); });
  RunOptions first = options;
  first.node_rank = 0;
  const MungeSecret zero = secret_by_munge(step, first, soon);
  EXPECT_GE(zero.secret.size(), 32U);
  EXPECT_EQ(other.get().secret, zero.secret);
  EXPECT_EQ(secret_by_munge(step, options, soon).secret, zero.secret) << "one that comes later";
}

}  // namespace
}  // namespace lockstep
