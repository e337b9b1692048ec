#include "lockstep/launch/agent/worker_starter.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <filesystem>

#include "lockstep/base/env.h"
#include "lockstep/base/log.h"
#include "lockstep/base/process_handle.h"
#include "lockstep/world/fork_server/fork_server_message.h"

namespace lockstep::inline internal {
namespace {

namespace fs = std::filesystem;

/// A program may load much data from a slow disk.
constexpr std::chrono::seconds kLoadLimit{120};
constexpr std::chrono::seconds kForkLimit{60};

bool same_arguments(const std::vector<Spawn>& workers) {
  return std::all_of(workers.begin(), workers.end(), [&](const Spawn& worker) {
    return worker.argv == workers[0].argv && worker.path == workers[0].path;
  });
}

}  // namespace

bool uses_fork_server(const Environment& environment, const RunOptions& options) {
  const std::string chosen = value_in(environment, "LOCKSTEP_FORK_SERVER");
  if (!chosen.empty() && !parse_yes(chosen, "LOCKSTEP_FORK_SERVER")) return false;
  return options.nproc_per_node > 1 || options.max_restarts > 0 || options.num_nodes > 1;
}

Spawn resolved(Spawn worker) {
  const fs::path path(worker.path);
  if (path.filename() != "lockstep" || worker.argv.size() < 2) return worker;
  const std::string program = "lockstep-" + worker.argv[1];
  const std::string beside = (path.parent_path() / program).string();
  if (!supports_fork_server(beside)) return worker;
  worker.path = beside;
  worker.argv.erase(worker.argv.begin());
  worker.argv[0] = program;
  return worker;
}

WorkerStarter::WorkerStarter(bool use_fork_server) : use_fork_server_(use_fork_server) {
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask_);
}

void WorkerStarter::load(const std::vector<Spawn>& workers) {
  try {
    start_server(workers);
  } catch (const Error&) {
    socket_.reset();
  }
}

std::vector<pid_t> WorkerStarter::start(const std::vector<Spawn>& workers) {
  if (!tried_ && !loading_) start_server(workers);
  tried_ = true;
  if (loading_ && !await_server()) return {};
  std::vector<pid_t> pids(workers.size(), 0);
  if (socket_) fork_all(workers, &pids);
  for (size_t i = 0; i < workers.size(); ++i) {
    if (pids[i] == 0) pids[i] = spawn(workers[i], mask_);
  }
  return pids;
}

void WorkerStarter::start_server(const std::vector<Spawn>& workers) {
  if (!use_fork_server_ || !same_arguments(workers)) return;
  const Spawn first = resolved(workers[0]);
  int ends[2];
  if (!supports_fork_server(first.path) ||
      ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return;
  }
  socket_.reset(ends[0]);
  UniqueFd theirs(ends[1]);
  Environment environment = *first.environment;
  environment[kForkServerFdVariable] = std::to_string(theirs.get());
  Spawn server = first;
  server.environment = &environment;
  server.stdout_fd = server.stderr_fd = -1;  // output of initialisers belongs to no rank
  server.cpus.clear();                       // each rank binds itself
  server.kept_fd = theirs.get();
  program_ = first.path;
  server_ = spawn(server, mask_);
  server_process_ = ProcessHandle::of(server_);
  loading_ = true;
}

/// False: interrupted.
bool WorkerStarter::await_server() {
  loading_ = false;
  const auto hello = receive_answer(socket_.get(), Deadline::after(kLoadLimit), interrupt_);
  pollfd interrupted{interrupt_, POLLIN, 0};
  if (!hello && ::poll(&interrupted, 1, 0) == 1) {
    kill_server();
    socket_.reset();
    return false;
  }
  if (!hello) {
    kill_server();
    give_up("it did not come to start_fork_server()");
  } else if (hello->threads > 0) {
    give_up(fmt::format("it has {} threads before start_fork_server()", hello->threads + 1));
  }
  return true;
}

/// Leaves 0 for a worker that could not be forked.
void WorkerStarter::fork_all(const std::vector<Spawn>& workers, std::vector<pid_t>* pids) {
  size_t sent = 0;
  for (; sent < workers.size(); ++sent) {
    const Spawn& worker = workers[sent];
    const UniqueFd environment = environment_memory(*worker.environment);
    if (!send_request(socket_.get(), static_cast<int32_t>(sent),
                      {environment.get(), worker.stdout_fd, worker.stderr_fd})) {
      break;
    }
  }
  // The ranks themselves answer. When the other end has no holder any more, all forked ranks are
  // known.
  size_t forked = 0;
  for (size_t answers = 0; answers < sent; ++answers) {
    auto answer = receive_answer(socket_.get(), Deadline::after(kForkLimit));
    if (!answer) {
      kill_server();  // it may hang
      answer = receive_answer(socket_.get(), Deadline::after(kForkLimit));
    }
    if (!answer) break;
    // A program may write anything there, not only start_fork_server()'s messages.
    const auto number = static_cast<size_t>(answer->number);
    if (answer->error != 0 || number >= sent || pids->at(number) != 0) continue;
    pids->at(number) = answer->pid;
    ++forked;
  }
  if (forked < workers.size()) give_up("the process that its ranks are forked from is gone");
}

void WorkerStarter::kill_server() {
  server_process_.send(SIGKILL);
}

void WorkerStarter::give_up(const std::string& why) {
  socket_.reset();
  log_warn(fmt::format("{}: {}; ranks are started one by one", program_, why));
}

}  // namespace lockstep::inline internal
