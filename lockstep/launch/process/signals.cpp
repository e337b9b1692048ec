#include "lockstep/launch/process/signals.h"

#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

bool ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void end_now(int signal) {
  ::_exit(128 + signal);
}

}  // namespace

void end_as_init(const std::set<int>& ending) {
  if (::getpid() != 1) return;
  for (const int signal : ending) {
    if (!ignored(signal)) ::signal(signal, &end_now);
  }
}

// Tests the kernel with a process of the same group that takes SIGTSTP's default action.
bool may_be_stopped() {
  const pid_t child = ::fork();
  if (child < 0) return true;
  if (child == 0) {
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    ::signal(SIGTSTP, SIG_DFL);
    ::pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);
    ::raise(SIGTSTP);
    ::_exit(0);
  }
  int status = 0;
  while (::waitpid(child, &status, WUNTRACED) < 0 && errno == EINTR) {
  }
  if (!WIFSTOPPED(status)) return false;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return true;
}

SignalGate::SignalGate(const std::set<int>& ending, bool named) {
  sigset_t set;
  sigset_t ending_set;
  sigemptyset(&set);
  sigemptyset(&ending_set);
  std::set<int> taken = ending;
  std::set<int> to_default;
  taken.insert({SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT});
  for (const int signal : taken) {
    if (ignored(signal)) {
      if (!named || ending.count(signal) == 0) continue;
      to_default.insert(signal);
    }
    sigaddset(&set, signal);
    if (ending.count(signal) > 0) sigaddset(&ending_set, signal);
  }
  // An inherited SIG_IGN would make the kernel reap the workers and keep their status.
  ::signal(SIGCHLD, SIG_DFL);
  sigaddset(&set, SIGCHLD);
  ::pthread_sigmask(SIG_BLOCK, &set, &original_);
  // Also for workers, which would inherit SIG_IGN.
  for (const int signal : to_default) ::signal(signal, SIG_DFL);
  ::signal(SIGPIPE, SIG_IGN);
  fd_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  ending_fd_.reset(::signalfd(-1, &ending_set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_ || !ending_fd_) throw io_error("signalfd");
}

SignalGate::~SignalGate() {
  ::pthread_sigmask(SIG_SETMASK, &original_, nullptr);
}

int SignalGate::next() {
  signalfd_siginfo info{};
  return ::read(fd_.get(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo)
                                                              : 0;
}

}  // namespace lockstep::inline internal
