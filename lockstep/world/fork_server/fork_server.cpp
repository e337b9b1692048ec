#include "lockstep/world/fork_server/fork_server.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/base/proc.h"
#include "lockstep/deadline.h"
#include "lockstep/world/cpu_topology.h"
#include "lockstep/world/fork_server/fork_server_message.h"

namespace lockstep::inline internal {
namespace {

/// Installs the request's environment. Pointers of main() into the old one stay valid.
bool take_environment(int memory) {
  struct stat status {};
  if (::fstat(memory, &status) != 0) return false;
  // Never freed: the environment lives as long as the process.
  static auto* const bytes = new std::string(static_cast<size_t>(status.st_size), '\0');
  if (::pread(memory, bytes->data(), bytes->size(), 0) != status.st_size) return false;
  static auto* const variables = new std::vector<char*>;
  for (size_t at = 0; at < bytes->size(); at += std::strlen(bytes->data() + at) + 1) {
    variables->push_back(bytes->data() + at);
  }
  variables->push_back(nullptr);
  environ = variables->data();
  return true;
}

/// In the rank, whose parent, `between`, ends at once: the kernel then makes it a child of the
/// agent, which is a subreaper.
void await_adoption(pid_t between) {
  while (::getppid() == between) std::this_thread::yield();
}

/// In the rank. False: the agent is gone.
bool become_rank(const ForkRequest& request, pid_t between, pid_t agent) {
  await_adoption(between);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != agent) return false;
  ::setsid();
  if (::dup2(request.out.get(), STDOUT_FILENO) < 0 ||
      ::dup2(request.err.get(), STDERR_FILENO) < 0 ||
      !take_environment(request.environment.get())) {
    return false;
  }
  if (const char* cpus = std::getenv(kCpusVariable)) bind_to(cpu_mask(parse_cpu_list(cpus)));
  return true;
}

/// True in the rank.
bool fork_rank(int agent_socket, const ForkRequest& request, pid_t agent) {
  const pid_t between = ::fork();
  if (between < 0) send_answer(agent_socket, {request.number, errno, 0, 0});
  if (between > 0) {
    while (::waitpid(between, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (between != 0) return false;
  const pid_t parent = ::getpid();
  const pid_t rank = ::fork();
  if (rank < 0) send_answer(agent_socket, {request.number, errno, 0, 0});
  if (rank != 0) ::_exit(0);
  if (!become_rank(request, parent, agent)) ::_exit(127);
  if (!send_answer(agent_socket, {request.number, 0, ::getpid(), 0})) ::_exit(127);
  return true;
}

}  // namespace

int threads_to_lose() {
  // A thread that has been joined is still listed for a moment.
  const auto deadline = Deadline::after(std::chrono::milliseconds(20));
  while (true) {
    const int others = thread_count() - 1 - kThreadsOfSanitizer;
    if (others <= 0) return 0;
    if (deadline.passed()) return others;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void serve_forks(UniqueFd agent_socket) {
  const pid_t agent = ::getppid();
  while (const auto request = receive_request(agent_socket.get())) {
    std::fflush(nullptr);  // so that buffered output is not printed twice
    if (fork_rank(agent_socket.get(), *request, agent)) return;
  }
  ::_exit(0);
}

}  // namespace lockstep::inline internal
