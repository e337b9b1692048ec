#include "lockstep/launch/agent/guard.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

constexpr size_t kMaxEnvironmentBytes = 2 << 20;

std::string environment_of(const char* pid) {
  const UniqueFd fd(
      ::open((std::string("/proc/") + pid + "/environ").c_str(), O_RDONLY | O_CLOEXEC));
  std::string bytes(kMaxEnvironmentBytes, '\0');
  size_t size = 0;
  while (fd && size < bytes.size()) {
    const ssize_t got = ::read(fd.get(), bytes.data() + size, bytes.size() - size);
    if (got <= 0) break;
    size += static_cast<size_t>(got);
  }
  bytes.resize(size);
  return '\0' + bytes;
}

bool has_marks(const std::string& environment, const std::vector<std::string>& marks) {
  return std::all_of(marks.begin(), marks.end(), [&](const std::string& mark) {
    return environment.find('\0' + mark + '\0') != std::string::npos;
  });
}

/// Kills marked processes; returns how many it found.
int kill_marked(const std::vector<std::string>& marks) {
  DIR* proc = ::opendir("/proc");
  if (proc == nullptr) return 0;
  int found = 0;
  while (const dirent* entry = ::readdir(proc)) {
    const int pid = std::atoi(entry->d_name);
    if (pid <= 1 || pid == ::getpid()) continue;
    if (has_marks(environment_of(entry->d_name), marks) && ::kill(pid, SIGKILL) == 0) ++found;
  }
  ::closedir(proc);
  return found;
}

void take_messages(int pipe, std::vector<pid_t>& groups) {
  pid_t message = 0;
  while (::read(pipe, &message, sizeof message) == sizeof message) {
    if (message > 0) groups.push_back(message);
    if (message < 0) std::erase(groups, -message);
  }
}

/// Returns the groups that are left when the agent's end of `pipe` has closed. Until then messages
/// stay in the pipe, which holds 16,384: waking up for each would cost the agent more than the
/// rest of starting a worker. Once a minute it is emptied.
std::vector<pid_t> await_end(int pipe) {
  ::fcntl(pipe, F_SETFL, O_NONBLOCK);
  std::vector<pid_t> groups;
  pollfd agent{pipe, 0, 0};
  while ((agent.revents & (POLLHUP | POLLERR)) == 0) {
    ::poll(&agent, 1, 60'000);
    take_messages(pipe, groups);
  }
  return groups;
}

[[noreturn]] void stand_guard(int pipe, const std::vector<std::string>& marks) {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::setsid();  // out of reach of what kills the agent's group
  ::prctl(PR_SET_NAME, "lockstep-guard");
  ::dup2(pipe, 0);
  ::close_range(1, ~0U, 0);
  const std::vector<pid_t> groups = await_end(0);
  for (const pid_t group : groups) ::kill(-group, SIGKILL);
  // Again while there are some: one may have forked while the list was read.
  for (int round = 0; !groups.empty() && round < 10 && kill_marked(marks) > 0; ++round) {
  }
  ::_exit(0);
}

}  // namespace

Guard::Guard(const std::vector<std::string>& marks) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw io_error("pipe");
  const UniqueFd read_end(ends[0]);
  pipe_.reset(ends[1]);
  pid_ = ::fork();
  if (pid_ < 0) throw io_error("fork");
  if (pid_ == 0) {
    pipe_.reset();
    stand_guard(read_end.get(), marks);
  }
}

void Guard::dismiss() {
  ::kill(pid_, SIGKILL);
}

Guard::~Guard() {
  dismiss();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Guard::watch(pid_t group) {
  tell(group);
}

void Guard::forget(pid_t group) {
  tell(-group);
}

void Guard::tell(pid_t message) {
  // SIGPIPE is ignored by the agent; a guard that someone killed is no reason to end the job.
  [[maybe_unused]] const ssize_t put = ::write(pipe_.get(), &message, sizeof message);
}

}  // namespace lockstep
