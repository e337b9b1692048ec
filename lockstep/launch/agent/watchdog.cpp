#include "lockstep/launch/agent/watchdog.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "lockstep/base/clock.h"
#include "lockstep/base/descriptors.h"
#include "lockstep/base/process_limits.h"
#include "lockstep/base/raw_folder.h"
#include "lockstep/base/unique_fd.h"

namespace lockstep::inline internal {
namespace {

// The agent already has threads when it forks the watchdog. The watchdog therefore only makes
// system calls and allocates nothing; all it needs is made before the fork.

constexpr size_t kMaxEnvironmentBytes = 2 << 20;

/// Each "NAME=VALUE" between two '\0', as in "\0" + the bytes of /proc/PID/environ.
using Marks = std::vector<std::string>;

Marks delimited(Marks marks) {
  for (std::string& mark : marks) mark = '\0' + mark + '\0';
  return marks;
}

/// "\0" and the environment of a process; valid until the next call.
std::string_view environment_of(int proc, const char* pid) {
  static char bytes[1 + kMaxEnvironmentBytes];
  const UniqueFd folder(::openat(proc, pid, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const UniqueFd fd(::openat(folder.get(), "environ", O_RDONLY | O_CLOEXEC));
  size_t size = 1;
  while (fd && size < sizeof bytes) {
    const ssize_t got = ::read(fd.get(), bytes + size, sizeof bytes - size);
    if (got <= 0) break;
    size += static_cast<size_t>(got);
  }
  return {bytes, size};
}

bool kill_if_marked(int proc, const char* name, const Marks& marks) {
  const int pid = std::atoi(name);
  if (pid <= 1 || pid == ::getpid()) return false;
  const std::string_view environment = environment_of(proc, name);
  const bool marked = std::all_of(marks.begin(), marks.end(), [&](const std::string& mark) {
    return environment.find(mark) != std::string_view::npos;
  });
  return marked && ::kill(pid, SIGKILL) == 0;
}

/// Kills marked processes; returns how many it found.
int kill_marked(const Marks& marks) {
  const UniqueFd proc(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  int found = 0;
  for_each_name(proc.get(), [&](const char* name) {
    if (kill_if_marked(proc.get(), name, marks)) ++found;
  });
  return found;
}

void take_messages(int pipe, std::vector<pid_t>& groups) {
  pid_t message = 0;
  while (::read(pipe, &message, sizeof message) == sizeof message) {
    if (message > 0) groups.push_back(message);
    if (message < 0) std::erase(groups, -message);
  }
}

/// Waits until the agent's end of `pipe` has closed, and leaves the remaining groups in `groups`.
/// Until then messages stay in the pipe, which holds 16,384. A wake-up for each would cost the
/// agent more than the rest of a worker's start. The pipe is emptied once a minute.
void await_end(int pipe, std::vector<pid_t>& groups) {
  ::fcntl(pipe, F_SETFL, O_NONBLOCK);
  pollfd agent{pipe, 0, 0};
  while ((agent.revents & (POLLHUP | POLLERR)) == 0) {
    ::poll(&agent, 1, 60'000);
    take_messages(pipe, groups);
  }
}

struct OwnFiles {
  std::vector<std::string> files, folders;
};

OwnFiles own_files(const std::vector<std::string>& files, size_t folders) {
  OwnFiles own = {files, {}};
  for (size_t i = 0; i < folders && i < files.size(); ++i) {
    own.folders.push_back(files[i].substr(0, files[i].rfind('/')));
  }
  return own;
}

void remove_files(const OwnFiles& own) {
  for (const std::string& file : own.files) ::unlink(file.c_str());
  for (const std::string& folder : own.folders) ::rmdir(folder.c_str());
}

[[noreturn]] void run_watchdog(int pipe, std::vector<pid_t>& groups, const Marks& marks,
                               const OwnFiles& own) {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::setsid();  // so that a signal to the agent's group does not reach it
  ::prctl(PR_SET_NAME, "lockstep-watchd");  // the kernel takes 15 characters
  ::dup2(pipe, 0);
  close_from(1);
  await_end(0, groups);
  for (const pid_t group : groups) ::kill(-group, SIGKILL);
  // Repeat while there are some: one may have forked while the list was read.
  for (int round = 0; !groups.empty() && round < 10 && kill_marked(marks) > 0; ++round) {
  }
  remove_files(own);
  ::_exit(0);
}

}  // namespace

Watchdog::Watchdog(const std::vector<std::string>& marks, size_t max_groups,
                   const std::vector<std::string>& files, size_t folders) {
  const OwnFiles own = own_files(files, folders);
  const Marks between = delimited(marks);
  std::vector<pid_t> groups;
  groups.reserve(max_groups);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw io_error("pipe");
  const UniqueFd read_end(ends[0]);
  pipe_.reset(ends[1]);
  pid_ = ::fork();
  if (pid_ < 0) throw start_error("fork");
  if (pid_ == 0) {
    pipe_.reset();
    run_watchdog(read_end.get(), groups, between, own);
  }
}

void Watchdog::dismiss() {
  ::kill(pid_, SIGKILL);
}

Watchdog::~Watchdog() {
  dismiss();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Watchdog::watch(pid_t group) {
  send(group);
}

void Watchdog::forget(pid_t group) {
  send(-group);
}

void Watchdog::send(pid_t message) {
  // The agent ignores SIGPIPE: the job goes on if somebody killed the watchdog.
  [[maybe_unused]] const ssize_t put = ::write(pipe_.get(), &message, sizeof message);
}

std::string agent_mark() {
  return fmt::format("{}-{}", ::getpid(), monotonic_ns());
}

}  // namespace lockstep::inline internal
