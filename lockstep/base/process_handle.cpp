#include "lockstep/base/process_handle.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <thread>
#include <utility>

#include "lockstep/base/literals.h"
#include "lockstep/base/proc.h"
#include "lockstep/base/process_limits.h"
#include "lockstep/base/signal_blocking_thread.h"

namespace lockstep::inline internal {
namespace {

/// Also one that has ended, until it is reaped.
bool is_child(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/// Returns also if somebody reaps the child first.
void await_child(pid_t pid) {
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
}

}  // namespace

ProcessHandle::ProcessHandle(pid_t pid) : pid_(pid) {
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (pidfd) {
    fd_ = std::make_shared<const UniqueFd>(std::move(pidfd));
  } else if (errno == ENOSYS || errno == EPERM) {
    watch_by_thread();
  }
}

ProcessHandle ProcessHandle::of(pid_t pid) {
  ProcessHandle handle(pid);
  if (!handle) throw start_error("watch process " + std::to_string(pid));
  return handle;
}

void ProcessHandle::watch_by_thread() {
  const bool child = is_child(pid_);
  const std::string started = process_start(pid_);
  started_ = started;
  if (!child && started.empty()) {
    errno = ESRCH;
    return;
  }
  const auto event = std::make_shared<const UniqueFd>(::eventfd(0, EFD_CLOEXEC));
  if (!*event) return;
  const auto watch = [pid = pid_, child, started, held = std::weak_ptr(event)] {
    if (child) await_child(pid);
    while (!child && !held.expired() && process_start(pid) == started) {
      std::this_thread::sleep_for(100ms);
    }
    const uint64_t one = 1;
    if (const auto fd = held.lock()) {
      [[maybe_unused]] const ssize_t put = ::write(fd->get(), &one, sizeof one);
    }
  };
  try {
    start_thread_with_signals_blocked(watch).detach();
    fd_ = event;
  } catch (const std::system_error& error) {
    errno = error.code().value();
  }
}

bool ProcessHandle::ended(int wait_ms) const {
  pollfd item{fd(), POLLIN, 0};
  return ::poll(&item, 1, wait_ms) > 0;
}

bool ProcessHandle::send(int signal) const {
  if (!fd_) return false;
  if (!started_ && ::syscall(SYS_pidfd_send_signal, fd(), signal, nullptr, 0) == 0) return true;
  return has_its_pid() && ::kill(pid_, signal) == 0;
}

bool ProcessHandle::has_its_pid() const {
  if (!started_) return !ended(0);
  return process_start(pid_) == *started_ && (!started_->empty() || is_child(pid_));
}

}  // namespace lockstep::inline internal
