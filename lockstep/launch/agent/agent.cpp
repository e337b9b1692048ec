#include "lockstep/launch/agent/agent.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include "lockstep/base/deadline.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/launch/agent/children.h"
#include "lockstep/launch/agent/log_folder.h"
#include "lockstep/launch/agent/program.h"
#include "lockstep/launch/agent/worker_command.h"
#include "lockstep/launch/identity.h"

namespace lockstep {
namespace {

/// What a ready descriptor is; the low half of the tag is a local rank.
enum Tag : uint64_t {
  kSignals = 1ULL << 32,
  kPidfd = 2ULL << 32,
  kOut = 3ULL << 32,
  kErr = 4ULL << 32,
  kNews = 5ULL << 32,
  kConsole = 6ULL << 32,
  kKnock = 7ULL << 32,
};
constexpr uint64_t kKindMask = ~0ULL << 32;

/// "[3] ", as wide as the highest rank's.
std::string line_prefix(int rank, int world) {
  const auto text = fmt::format("[{}] ", rank);
  const size_t width = fmt::format("[{}] ", world - 1).size();
  return text + std::string(width - text.size(), ' ');
}

/// What only processes of this agent's workers have in their environment.
std::vector<std::string> marks(const JobPlan& plan) {
  return {"LOCKSTEP_STORE=" + to_string(plan.store), "LOCKSTEP_RUN_ID=" + plan.run_id,
          fmt::format("LOCKSTEP_NODE_RANK={}", plan.node_rank)};
}

}  // namespace

Agent::Agent(const RunOptions& options, const Environment& environment, const JobPlan& plan,
             Rendezvous* rendezvous, std::string program)
    : options_(options),
      environment_(environment),
      plan_(plan),
      rendezvous_(rendezvous),
      program_(std::move(program)),
      cores_(usable_cores()),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) throw io_error("epoll_create1");
  state_.workers.resize(static_cast<size_t>(plan_.own().local_size));
  state_.several_nodes = plan_.num_nodes() > 1;
  state_.grace = options_.shutdown_timeout;
  if (!options_.log_dir.empty()) log_folder_ = make_log_folder(options_.log_dir, plan_);
}

Agent::~Agent() {
  if (!guard_) return;
  for (const Worker& worker : workers_) {
    if (worker.pidfd || worker.ended_group) ::kill(-worker.pid, SIGKILL);
  }
  kill_remaining_children(guard_->pid());
}

int Agent::run() {
  adopt_orphans();
  guard_.emplace(marks(plan_), state_.workers.size());
  watch_fd(signals_.fd(), kSignals);
  if (rendezvous_->fd() >= 0) watch_fd(rendezvous_->fd(), kNews);
  if (rendezvous_->knock_fd() >= 0) watch_fd(rendezvous_->knock_fd(), kKnock);
  try {
    start_workers();
    loop();
  } catch (const Error& error) {
    rendezvous_->failed(node_failure(plan_, {1, 0}, error.what()));
    throw;
  }
  return finish();
}

void Agent::start_workers() {
  workers_.resize(state_.workers.size());
  for (int local_rank = 0; local_rank < plan_.own().local_size; ++local_rank) {
    start_worker(local_rank);
  }
}

void Agent::start_worker(int local_rank) {
  Worker& worker = workers_[static_cast<size_t>(local_rank)];
  worker.out = open_output(local_rank, 1);
  worker.err = open_output(local_rank, 2);
  WorkerEnvOptions options;
  options.role = options_.role;
  options.local_addr = options_.local_addr;
  options.cores = cores_;
  if (!log_folder_.empty()) {
    options.error_file = worker_folder(local_rank) + "/error.json";
    options.flight_dir = std::filesystem::absolute(log_folder_).string();
  }
  const Environment environment = worker_environment(environment_, plan_, local_rank, options);
  worker.started = std::chrono::steady_clock::now();
  worker.pid = spawn({program_, with_local_rank(options_.command, local_rank), &environment,
                      worker.out->worker_end(), worker.err->worker_end()},
                     signals_.original_mask());
  guard_->watch(worker.pid);
  worker.out->close_worker_end();
  worker.err->close_worker_end();
  worker.pidfd = open_pidfd(worker.pid);
  const auto index = static_cast<uint64_t>(local_rank);
  watch_fd(worker.pidfd.get(), kPidfd | index);
  if (worker.out->fd() >= 0) watch_fd(worker.out->fd(), kOut | index);
  if (worker.err->fd() >= 0) watch_fd(worker.err->fd(), kErr | index);
}

std::string Agent::worker_folder(int local_rank) const {
  return fmt::format("{}/{}", log_folder_, local_rank);
}

std::unique_ptr<WorkerOutput> Agent::open_output(int local_rank, int stream) const {
  const auto chosen = [&](const StreamMap& map) {
    const Streams streams = map.of(local_rank);
    return stream == 1 ? streams.out : streams.err;
  };
  const bool redirected = chosen(options_.redirects);
  const bool teed = chosen(options_.tee);
  OutputRoute route;
  route.stream = stream;
  route.prefix = line_prefix(plan_.own().first_rank + local_rank, world_size(plan_.nodes));
  route.piped = teed || !redirected;
  route.console =
      options_.local_ranks_filter.empty() || options_.local_ranks_filter.count(local_rank) > 0;
  route.keep_tail = stream == 2;
  if (redirected || teed) {
    route.file = worker_folder(local_rank) + (stream == 1 ? "/stdout.log" : "/stderr.log");
  }
  return std::make_unique<WorkerOutput>(route);
}

void Agent::watch_fd(int fd, uint64_t tag) {
  epoll_event event{};
  event.events = tag == kConsole ? EPOLLOUT : EPOLLIN;
  event.data.u64 = tag;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) throw io_error("epoll_ctl");
}

void Agent::loop() {
  std::array<epoll_event, 64> events;
  while (state_.phase != AgentState::Phase::kFinished) {
    const int count =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), wait_ms());
    if (count < 0 && errno != EINTR) throw io_error("epoll_wait");
    for (int i = 0; i < count; ++i) on_ready(events[static_cast<size_t>(i)].data.u64);
    if (orphans_ended_) reap_orphans();
    if (state_.act_at && std::chrono::steady_clock::now() >= *state_.act_at) tell(TimePassed{});
    flush_console();
  }
}

int Agent::wait_ms() const {
  return state_.act_at ? Deadline::at(*state_.act_at).left_poll_ms() : -1;
}

void Agent::on_ready(uint64_t tag) {
  const auto index = static_cast<size_t>(tag & ~kKindMask);
  switch (tag & kKindMask) {
    case kSignals:
      return on_signals();
    case kPidfd:
      return on_worker_ended(static_cast<int>(index));
    case kOut:
      workers_[index].out->read_some(&console_);
      return;
    case kErr:
      workers_[index].err->read_some(&console_);
      return;
    case kNews:
      return on_news();
    case kKnock:
      return on_knock();
    default:
      return;  // the console can be written: the loop does so anyway
  }
}

void Agent::on_worker_ended(int local_rank) {
  Worker& worker = workers_[static_cast<size_t>(local_rank)];
  if (!worker.pidfd) return;
  const auto status = reap(worker.pid);
  if (!status) return;
  worker.pidfd.reset();
  worker.ended_group = group_exists(worker.pid);
  worker.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - worker.started).count();
  worker.out->drain(&console_);
  worker.err->drain(&console_);
  if (!worker.ended_group) guard_->forget(worker.pid);
  WorkerEnded event{local_rank, *status, worker.ended_group, {}};
  for (size_t i = 0; !status->ok() && i < workers_.size(); ++i) {
    const bool runs = static_cast<bool>(workers_[i].pidfd);
    if (runs && dying_by_signal(workers_[i].pid)) {
      event.dying_by_signal.push_back(static_cast<int>(i));
    }
  }
  tell(event);
}

void Agent::on_signals() {
  while (const int signal = signals_.next()) {
    if (signal == SIGCHLD) {
      orphans_ended_ = true;
    } else {
      tell(SignalCame{signal});
    }
  }
}

void Agent::reap_orphans() {
  orphans_ended_ = false;
  while (const pid_t pid = ended_child()) {
    const bool ours = std::any_of(workers_.begin(), workers_.end(), [pid](const Worker& worker) {
      return worker.pid == pid && worker.pidfd;
    });
    if (ours) {
      // Its pidfd is ready too; taken from there, workers come in the order of their ends.
      orphans_ended_ = true;
      break;
    }
    reap(pid);
  }
  check_groups();
}

/// Groups of ended workers in which nobody is left.
void Agent::check_groups() {
  for (size_t i = 0; i < workers_.size(); ++i) {
    Worker& worker = workers_[i];
    if (!worker.ended_group || group_exists(worker.pid)) continue;
    worker.ended_group = false;
    guard_->forget(worker.pid);
    worker.out->drain(&console_);
    worker.err->drain(&console_);
    tell(GroupGone{static_cast<int>(i)});
  }
}

void Agent::on_news() {
  end_ = rendezvous_->news().end;
  if (!end_) return;
  if (end_->failure) {
    tell(OthersFailed{});
  } else {
    tell(OthersFinished{});
  }
}

void Agent::on_knock() {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, rendezvous_->knock_fd(), nullptr);
  rendezvous_->serve();
}

void Agent::flush_console() {
  console_.flush();
  const int waiting = console_.waiting_stream();
  if (watched_stream_ >= 0 && waiting != watched_stream_) {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, watched_stream_, nullptr);
    watched_stream_ = -1;
  }
  if (waiting >= 0 && watched_stream_ < 0) {
    watch_fd(waiting, kConsole);
    watched_stream_ = waiting;
  }
  if (console_.full() == reading_) set_reading(!reading_);
  // As for any program whose output nobody reads any more.
  if (console_.broken() && state_.phase == AgentState::Phase::kRunning) tell(SignalCame{SIGPIPE});
}

/// A console that is not read must hold up the workers, not fill the agent's memory.
void Agent::set_reading(bool on) {
  reading_ = on;
  for (size_t i = 0; i < workers_.size(); ++i) {
    for (const auto& [output, kind] :
         {std::pair{workers_[i].out.get(), kOut}, {workers_[i].err.get(), kErr}}) {
      if (output->fd() < 0) continue;
      epoll_event event{};
      event.events = on ? uint32_t{EPOLLIN} : 0;
      event.data.u64 = kind | i;
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, output->fd(), &event);
    }
  }
}

void Agent::tell(const AgentEvent& event) {
  for (const AgentAction& action : advance(&state_, event, std::chrono::steady_clock::now())) {
    std::visit([this](const auto& each) { act(each); }, action);
  }
}

void Agent::act(const SendSignal& action) {
  // A broken console is the agent's trouble; its workers are asked to end as always.
  const int signal = action.signal == SIGPIPE ? SIGTERM : action.signal;
  for (const int local_rank : remaining(state_)) {
    ::kill(-workers_[static_cast<size_t>(local_rank)].pid, signal);
  }
}

void Agent::act(const PublishFailure& action) {
  rendezvous_->failed(failure_of(action.local_rank));
}

void Agent::act(const PublishSignal& action) {
  rendezvous_->leave(action.signal);
}

void Agent::act(const PublishSuccess&) {
  rendezvous_->done();
}

void Agent::act(const SayWaiting&) {
  std::vector<int> ranks;
  for (const int local_rank : remaining(state_)) {
    ranks.push_back(plan_.own().first_rank + local_rank);
  }
  const auto left =
      std::chrono::duration<double>(*state_.kill_at - std::chrono::steady_clock::now());
  log_info(fmt::format("waiting for rank {} to end; SIGKILL in {:.0f} s", rank_list(ranks),
                       left.count()));
}

Failure Agent::failure_of(int local_rank) const {
  const Worker& worker = workers_[static_cast<size_t>(local_rank)];
  Failure failure = node_failure(plan_, {}, "");
  failure.cause.clear();
  failure.rank = plan_.own().first_rank + local_rank;
  failure.pid = worker.pid;
  failure.status = state_.workers[static_cast<size_t>(local_rank)].status;
  failure.seconds = worker.seconds;
  if (!log_folder_.empty()) failure.log_dir = worker_folder(local_rank);
  failure.stderr_tail = worker.err->tail();
  return failure;
}

int Agent::finish() {
  kill_remaining_children(guard_->pid());
  guard_->dismiss();
  for (Worker& worker : workers_) {
    worker.out->close(&console_);
    worker.err->close(&console_);
  }
  end_ = rendezvous_->news().end;
  std::optional<Failure> failure = end_ ? end_->failure : std::nullopt;
  std::optional<ExitStatus> others;
  if (failure && state_.others_failed) others = failure->status;
  if (!failure && state_.first_failed) failure = failure_of(*state_.first_failed);
  // Nothing runs any more: from here on a signal ends this program, also while nobody reads it.
  ::pthread_sigmask(SIG_SETMASK, &signals_.original_mask(), nullptr);
  console_.drain();
  if (failure) {
    console_.put(2, report_text(*failure, plan_.num_nodes()));
    console_.drain();
  }
  return exit_code(state_, others);
}

}  // namespace lockstep
