#include "lockstep/launch/agent/guard.h"

#include <dirent.h>
#include <fcntl.h>
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

[[noreturn]] void stand_guard(int pipe, const std::vector<std::string>& marks) {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::setsid();  // out of reach of what kills the agent's group
  ::prctl(PR_SET_NAME, "lockstep-guard");
  ::dup2(pipe, 0);
  ::close_range(1, ~0U, 0);
  std::vector<pid_t> groups;
  pid_t message = 0;
  ssize_t got = 0;
  while ((got = ::read(0, &message, sizeof message)) != 0) {
    if (got < 0 && errno != EINTR) break;
    if (message > 0) groups.push_back(message);
    if (message < 0) std::erase(groups, -message);
  }
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

Guard::~Guard() {
  ::kill(pid_, SIGKILL);
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
