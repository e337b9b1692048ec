#include "lockstep/base/process_handle.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <functional>
#include <optional>
#include <thread>

#include "lockstep/base/children.h"
#include "lockstep/base/literals.h"
#include "lockstep/base/proc.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/deadline.h"
#include "lockstep/error.h"
#include "tests/support/error_of.h"
#include "tests/support/namespaces.h"
#include "tests/support/refused_calls.h"

namespace lockstep {
namespace {

constexpr int kLongMs = 60'000;

/// Forks a process that waits for a signal.
pid_t fork_waiting() {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  while (true) ::pause();
}

/// A child of this process; an end before that of the test is the test's to reap.
class WaitingChild {
 public:
  ~WaitingChild() {
    if (!reaped_) end();
  }
  void end() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    reaped_ = true;
  }
  std::optional<ExitStatus> take_end() {
    const auto status = reap(pid_);
    reaped_ = status.has_value();
    return status;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = fork_waiting();
  bool reaped_ = false;
};

/// A child's child, which its parent does not reap.
class WaitingGrandchild {
 public:
  WaitingGrandchild() {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) throw io_error("pipe");
    const UniqueFd read_end(ends[0]);
    const UniqueFd write_end(ends[1]);
    const pid_t test = ::getpid();
    parent_ = ::fork();
    if (parent_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != test) ::_exit(1);
      const pid_t pid = fork_waiting();
      if (::write(write_end.get(), &pid, sizeof pid) != sizeof pid) ::_exit(1);
      while (true) ::pause();
    }
    if (::read(read_end.get(), &pid_, sizeof pid_) != sizeof pid_) throw io_error("read");
  }
  ~WaitingGrandchild() {
    ::kill(parent_, SIGKILL);
    ::waitpid(parent_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t parent_ = 0;
  pid_t pid_ = 0;
};

/// Each test with the kernel's pidfds (0), and where they are refused with an error.
class Handle : public ::testing::TestWithParam<int> {
 protected:
  static void run(const std::function<void()>& body) {
    testing::run_refused(testing::kCallsSinceLinux5, GetParam(), body);
  }
};
INSTANTIATE_TEST_SUITE_P(Pidfds, Handle, ::testing::Values(0, ENOSYS, EPERM),
                         [](const auto& given) {
                           return given.param == 0        ? "OfTheKernel"
                                  : given.param == ENOSYS ? "ThatTheKernelHasNot"
                                                          : "ThatAFilterRefuses";
                         });

TEST_P(Handle, SeesAChildsEndAndLeavesItToTheReaper) {
  run([] {
    WaitingChild child;
    const auto handle = ProcessHandle::of(child.pid());
    EXPECT_FALSE(handle.ended(20));
    EXPECT_TRUE(handle.send(SIGTERM));
    EXPECT_TRUE(handle.ended(kLongMs));
    EXPECT_TRUE(handle.ended(0)) << "it stays so";
    const auto status = child.take_end();
    ASSERT_TRUE(status);
    EXPECT_EQ(status->signal, SIGTERM);
    EXPECT_TRUE(handle.ended(0));
  });
}

TEST_P(Handle, SeesAnEndThatCameBeforeIt) {
  run([] {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(3);
    siginfo_t info{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
    const auto handle = ProcessHandle::of(pid);
    EXPECT_TRUE(handle.ended(kLongMs));
    EXPECT_EQ(reap(pid)->code, 3);
  });
}

TEST_P(Handle, SeesTheEndOfAProcessThatIsNoChild) {
  run([] {
    const WaitingGrandchild other;
    const auto handle = ProcessHandle::of(other.pid());
    EXPECT_FALSE(handle.ended(150));
    EXPECT_TRUE(handle.send(SIGKILL));
    EXPECT_TRUE(handle.ended(kLongMs));
  });
}

TEST_P(Handle, SendsNothingAfterTheEnd) {
  run([] {
    WaitingChild child;
    const auto handle = ProcessHandle::of(child.pid());
    child.end();
    EXPECT_FALSE(handle.send(0));
    EXPECT_TRUE(handle.ended(kLongMs));
  });
}

TEST_P(Handle, OfNoProcessSaysSo) {
  run([] {
    WaitingChild child;
    child.end();
    const ProcessHandle gone(child.pid());
    EXPECT_EQ(errno, ESRCH);
    EXPECT_FALSE(gone);
    EXPECT_EQ(gone.fd(), -1);
    EXPECT_FALSE(gone.ended(0));
    EXPECT_FALSE(gone.send(0));
    const Error error = error_of([&] { ProcessHandle::of(child.pid()); });
    EXPECT_EQ(error.code(), ErrorCode::kIo);
  });
}

TEST_P(Handle, LeavesNoThread) {
  run([] {
    const auto expect_threads = [](int expected) {
      const auto deadline = Deadline::after(60s);
      while (thread_count() != expected && !deadline.passed()) std::this_thread::sleep_for(1ms);
      EXPECT_EQ(thread_count(), expected);
    };
    const int before = 2 + kThreadsOfSanitizer;  // main's, and this one
    expect_threads(before);                      // those of other tests end
    WaitingChild child;
    const WaitingGrandchild other;
    auto of_child = ProcessHandle::of(child.pid());
    auto of_other = ProcessHandle::of(other.pid());
    EXPECT_EQ(thread_count(), GetParam() == 0 ? before : before + 2);
    of_other = {};
    expect_threads(GetParam() == 0 ? before : before + 1);
    child.end();
    expect_threads(before);
  });
}

TEST(HandleWithPidfd, SendsAlsoWhereOnlyItsSignalsAreRefused) {
  testing::run_refused({SYS_pidfd_send_signal}, EPERM, [] {
    WaitingChild child;
    const auto handle = ProcessHandle::of(child.pid());
    EXPECT_TRUE(handle.send(SIGTERM));
    EXPECT_TRUE(handle.ended(kLongMs));
    EXPECT_FALSE(handle.send(SIGTERM));
  });
}

/// Another process gets the pid of one that has a handle. 0: it got no signal by that.
int signal_to_the_next_of_a_pid() {
  WaitingChild first;
  const auto handle = ProcessHandle::of(first.pid());
  std::this_thread::sleep_for(30ms);  // start times are counted in steps of 10 ms
  first.end();
  std::ofstream("/proc/sys/kernel/ns_last_pid") << first.pid() - 1 << std::flush;
  WaitingChild second;
  if (second.pid() != first.pid()) return 3;
  if (handle.send(SIGKILL)) return 1;
  return handle.ended(kLongMs) && !second.take_end() ? 0 : 2;
}

TEST(HandleOfAPid, SendsNothingToTheNextProcessOfItAsRoot) {
  LOCKSTEP_NEED_NAMESPACES();
  for (const int error : {0, ENOSYS, EPERM}) {
    const pid_t outside = ::fork();
    if (outside == 0) {
      testing::enter_user_namespace(CLONE_NEWPID | CLONE_NEWNS);
      testing::enter_pid_namespace();
      if (::mount("proc", "/proc", "proc", 0, nullptr) != 0) ::_exit(4);
      if (error != 0) testing::refuse_calls(testing::kCallsSinceLinux5, error);
      ::_exit(signal_to_the_next_of_a_pid());
    }
    int status = -1;
    ::waitpid(outside, &status, 0);
    EXPECT_EQ(status, 0) << error;
  }
}

}  // namespace
}  // namespace lockstep
