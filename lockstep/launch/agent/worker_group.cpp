#include "lockstep/launch/agent/worker_group.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "lockstep/base/children.h"
#include "lockstep/base/process_handle.h"
#include "lockstep/error.h"
#include "lockstep/launch/agent/error_file.h"
#include "lockstep/launch/agent/worker_command.h"
#include "lockstep/launch/process/program.h"

namespace lockstep::inline internal {
namespace {

/// Number of workers started together: their pipes are open at both ends until they run.
constexpr int kAtOnce = 32;

}  // namespace

WorkerGroup::WorkerGroup(const WorkerSetup& setup, const JobAssignment& assignment,
                         std::string log_folder)
    : setup_(setup),
      assignment_(assignment),
      log_folder_(std::move(log_folder)),
      steps_(assignment.ranks.local_size),
      workers_(static_cast<size_t>(assignment.ranks.local_size)) {
  setup_.lines->begin_generation();
  try {
    const int size = assignment_.ranks.local_size;
    for (int first = 0; first < size; first += kAtOnce) {
      if (start(first, std::min(first + kAtOnce, size))) continue;
      workers_.clear();  // none has been started yet
      return;
    }
  } catch (const Error&) {
    kill_all();
    throw;
  }
}

WorkerGroup::~WorkerGroup() {
  kill_all();
  remove_error_files();
}

void WorkerGroup::kill_all() {
  for (const Worker& worker : workers_) {
    if (worker.process || worker.ended_group) ::kill(-worker.pid, SIGKILL);
  }
}

void WorkerGroup::remove_error_files() const {
  if (!log_folder_.empty()) return;  // files in the log folder are kept
  for (int local_rank = 0; local_rank < assignment_.ranks.local_size; ++local_rank) {
    ::unlink(error_file(local_rank).c_str());
  }
}

/// False: a signal interrupted the first of these calls, and no worker is started.
bool WorkerGroup::start(int first, int end) {
  std::vector<Environment> environments;
  std::vector<Spawn> spawns;
  environments.reserve(kAtOnce);
  for (int local_rank = first; local_rank < end; ++local_rank) {
    Worker& worker = workers_[static_cast<size_t>(local_rank)];
    worker.out = open_output(local_rank, 1);
    worker.err = open_output(local_rank, 2);
    worker.started = std::chrono::steady_clock::now();
    environments.push_back(environment_of(local_rank));
    Spawn spawn;
    spawn.path = setup_.program;
    spawn.argv = with_local_rank(setup_.options->command, local_rank);
    spawn.environment = &environments.back();
    spawn.stdout_fd = worker.out->worker_end();
    spawn.stderr_fd = worker.err->worker_end();
    spawn.cpus = cpus_of(local_rank);
    spawns.push_back(std::move(spawn));
  }
  const auto pids = setup_.starter->start(spawns);
  if (pids.empty()) return false;
  for (int local_rank = first; local_rank < end; ++local_rank) {
    workers_[static_cast<size_t>(local_rank)].pid = pids[static_cast<size_t>(local_rank - first)];
    watch(local_rank);
  }
  return true;
}

void WorkerGroup::watch(int local_rank) {
  Worker& worker = workers_[static_cast<size_t>(local_rank)];
  setup_.watchdog->watch(worker.pid);
  worker.out->close_worker_end();
  worker.err->close_worker_end();
  worker.process = ProcessHandle::of(worker.pid);
  const auto index = static_cast<uint64_t>(local_rank);
  setup_.poller->add(worker.process.fd(), kWorkerEnded | index);
  if (worker.out->fd() >= 0) setup_.poller->add(worker.out->fd(), kWorkerOut | index);
  if (worker.err->fd() >= 0) setup_.poller->add(worker.err->fd(), kWorkerErr | index);
}

Environment WorkerGroup::environment_of(int local_rank) const {
  WorkerEnvOptions options;
  options.role = setup_.options->role;
  options.local_addr = setup_.options->local_addr;
  options.cores = setup_.cores;
  options.agent = setup_.mark;
  options.steps = steps_.path();
  options.error_file = error_file(local_rank);
  options.signals = setup_.options->signals_to_handle;
  options.virtual_local_rank = setup_.options->virtual_local_rank;
  options.cpus = cpus_of(local_rank);
  const auto& all = setup_.options->cpus_of_ranks;
  options.cpu_sharers = static_cast<int>(std::count(all.begin(), all.end(), options.cpus));
  options.terminal_columns = setup_.terminal_columns;
  options.stderr_fd = workers_[static_cast<size_t>(local_rank)].err->worker_end();
  if (!log_folder_.empty()) {
    options.flight_dir = std::filesystem::absolute(log_folder_).string();
  }
  return worker_environment(*setup_.environment, assignment_, local_rank, options);
}

std::vector<int> WorkerGroup::cpus_of(int local_rank) const {
  const auto& all = setup_.options->cpus_of_ranks;
  return all.empty() ? std::vector<int>() : all.at(static_cast<size_t>(local_rank));
}

std::string WorkerGroup::folder_of(int local_rank) const {
  return fmt::format("{}/{}", log_folder_, local_rank);
}

std::string WorkerGroup::error_file(int local_rank) const {
  if (setup_.options->log_dir == kNoFiles) return "";
  if (!log_folder_.empty()) {
    return std::filesystem::absolute(folder_of(local_rank)).string() + "/error.json";
  }
  return fmt::format("{}.error_{}", setup_.error_base, local_rank);
}

std::unique_ptr<WorkerOutput> WorkerGroup::open_output(int local_rank, int stream) const {
  const RunOptions& options = *setup_.options;
  const auto chosen = [&](const StreamMap& map) {
    const Streams streams = map.of(local_rank);
    return stream == 1 ? streams.out : streams.err;
  };
  const bool redirected = chosen(options.redirects);
  const bool teed = chosen(options.tee);
  OutputRoute route;
  route.stream = stream;
  route.local_rank = local_rank;
  route.piped = teed || !redirected;
  route.console =
      options.local_ranks_filter.empty() || options.local_ranks_filter.count(local_rank) > 0;
  route.keep_tail = stream == 2;
  if (redirected || teed) {
    route.file = log_folder_.empty()
                     ? kNoFiles
                     : folder_of(local_rank) + (stream == 1 ? "/stdout.log" : "/stderr.log");
  }
  return std::make_unique<WorkerOutput>(route);
}

std::optional<WorkerEnded> WorkerGroup::take_end(int local_rank) {
  const auto index = static_cast<size_t>(local_rank);
  if (index >= workers_.size() || !workers_[index].process) return std::nullopt;
  Worker& worker = workers_[index];
  const auto status = reap(worker.pid);
  if (!status) return std::nullopt;
  worker.process = {};
  worker.ended_group = group_exists(worker.pid);
  worker.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - worker.started).count();
  drain(&worker);
  if (!worker.ended_group) setup_.watchdog->forget(worker.pid);
  WorkerEnded end{local_rank, *status, worker.ended_group, {}};
  if (status->ok() || std::exchange(failed_, true)) return end;
  setup_.lines->failed(local_rank, worker.err->tail());
  for (size_t i = 0; i < workers_.size(); ++i) {
    const bool runs = static_cast<bool>(workers_[i].process);
    if (runs && dying_by_signal(workers_[i].pid))
      end.dying_by_signal.push_back(static_cast<int>(i));
  }
  return end;
}

std::vector<int> WorkerGroup::gone_groups() {
  std::vector<int> gone;
  for (size_t i = 0; i < workers_.size(); ++i) {
    Worker& worker = workers_[i];
    if (!worker.ended_group || group_exists(worker.pid)) continue;
    worker.ended_group = false;
    setup_.watchdog->forget(worker.pid);
    drain(&worker);
    gone.push_back(static_cast<int>(i));
  }
  return gone;
}

bool WorkerGroup::runs(pid_t pid) const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [pid](const Worker& worker) { return worker.pid == pid && worker.process; });
}

void WorkerGroup::send(const std::vector<int>& local_ranks, int signal) const {
  for (const int local_rank : local_ranks) {
    ::kill(-workers_[static_cast<size_t>(local_rank)].pid, signal);
  }
}

void WorkerGroup::read(uint64_t tag) {
  const auto index = static_cast<size_t>(tag & 0xffffffffU);
  if (index >= workers_.size()) return;  // an event of the previous generation
  WorkerOutput& output =
      (tag & kWorkerErr) == kWorkerErr ? *workers_[index].err : *workers_[index].out;
  if (output.fd() >= 0) output.read_some(setup_.lines);
}

void WorkerGroup::set_reading(bool on) {
  for (size_t i = 0; i < workers_.size(); ++i) {
    for (const auto& [output, kind] :
         {std::pair{workers_[i].out.get(), kWorkerOut}, {workers_[i].err.get(), kWorkerErr}}) {
      if (output->fd() >= 0) setup_.poller->change(output->fd(), kind | i, on ? EPOLLIN : 0U);
    }
  }
}

void WorkerGroup::drain(Worker* worker) {
  worker->out->drain(setup_.lines);
  worker->err->drain(setup_.lines);
}

void WorkerGroup::close_output() {
  for (Worker& worker : workers_) {
    worker.out->close(setup_.lines);
    worker.err->close(setup_.lines);
  }
}

Failure WorkerGroup::failure_of(int local_rank, const ExitStatus& status) const {
  const Worker& worker = workers_[static_cast<size_t>(local_rank)];
  Failure failure;
  failure.node_rank = assignment_.node_rank;
  failure.host = assignment_.host;
  failure.rank = assignment_.ranks.first_rank + local_rank;
  failure.pid = worker.pid;
  failure.status = status;
  failure.seconds = worker.seconds;
  failure.steps = steps_.steps();
  if (!log_folder_.empty()) failure.log_dir = folder_of(local_rank);
  failure.cause = read_error_message(error_file(local_rank)).value_or("");
  failure.stderr_tail = worker.err->tail();
  return failure;
}

}  // namespace lockstep::inline internal
