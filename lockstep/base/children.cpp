#include "lockstep/base/children.h"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/literals.h"
#include "lockstep/base/proc.h"
#include "lockstep/base/text.h"
#include "lockstep/deadline.h"

namespace lockstep::inline internal {
namespace {

/// Flags of a task in /proc/PID/stat; include/linux/sched.h.
constexpr unsigned kExiting = 0x4;
constexpr unsigned kKilledBySignal = 0x400;

/// Children of this process. Only the main thread has any: it alone starts processes, and orphans
/// are reparented to it.
std::vector<pid_t> children() {
  const pid_t self = ::getpid();
  std::vector<pid_t> pids;
  for (const auto& word :
       split(read_if_there(fmt::format("/proc/{}/task/{}/children", self, self)), ' ')) {
    if (!word.empty()) pids.push_back(std::stoi(word));
  }
  return pids;
}

}  // namespace

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

std::string describe(const ExitStatus& status) {
  return status.signal != 0 ? signal_name(status.signal) : fmt::format("exit code {}", status.code);
}

void adopt_orphans() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

std::optional<ExitStatus> reap(pid_t pid) {
  int status = 0;
  if (::waitpid(pid, &status, WNOHANG) != pid) return std::nullopt;
  if (WIFSIGNALED(status)) return ExitStatus{0, WTERMSIG(status)};
  return ExitStatus{WEXITSTATUS(status), 0};
}

pid_t ended_child() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 ? info.si_pid : 0;
}

bool dying_by_signal(pid_t pid) {
  const auto fields = stat_fields(pid);
  constexpr size_t kFlags = 6;  // field 9
  if (fields.size() <= kFlags) return false;
  const auto flags = std::stoul(fields[kFlags]);
  return (flags & kExiting) != 0 && (flags & kKilledBySignal) != 0;
}

bool group_exists(pid_t group) {
  return ::kill(-group, 0) == 0;
}

bool kill_remaining_children(const std::vector<pid_t>& except) {
  const auto deadline = Deadline::after(5s);
  while (!deadline.passed()) {
    bool any = false;
    for (const pid_t pid : children()) {
      if (std::find(except.begin(), except.end(), pid) != except.end()) continue;
      any = true;
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, WNOHANG);
    }
    if (!any) return true;
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

}  // namespace lockstep::inline internal
