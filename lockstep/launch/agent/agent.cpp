#include "lockstep/launch/agent/agent.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "lockstep/base/children.h"
#include "lockstep/base/counted.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/deadline.h"
#include "lockstep/launch/agent/error_file.h"
#include "lockstep/launch/agent/log_folder.h"
#include "lockstep/launch/agent/output/worker_lines.h"
#include "lockstep/launch/agent/worker_command.h"
#include "lockstep/launch/job/start_messages.h"
#include "lockstep/world/cores.h"

namespace lockstep::inline internal {
namespace {

/// After a signal, output is passed on for the rest of the grace, and at least this long.
constexpr std::chrono::seconds kReadAtLeast{5};

/// The agent's output when its job is over: the rest of the ranks' lines, and the report of a
/// failure.
struct FinalReport {
  const RunOptions& options;
  const JobAssignment& assignment;
  const AgentState& state;
  Console* console;

  /// Returns the exit code: `code`, or 1 if the output could not be written. `why_not_again`: why
  /// there is no further restart; may be empty.
  int write(int code, const std::optional<Failure>& failure,
            const std::string& why_not_again) const;

 private:
  std::optional<Deadline> read_by() const;
  std::string report_of(const Failure& failure) const;
};

/// The sender of a signal waits for output no longer than for the workers.
std::optional<Deadline> FinalReport::read_by() const {
  if (state.stop_signal == 0) return std::nullopt;
  const auto least = std::chrono::steady_clock::now() + kReadAtLeast;
  return Deadline::at(std::max(state.kill_at.value_or(least), least));
}

/// Names the ranks that had ended well before: others may fail because those are gone.
std::string FinalReport::report_of(const Failure& failure) const {
  std::string text =
      report_text(failure, assignment.num_nodes, console->has_shown(2, failure.stderr_tail));
  if (failure.node_rank != assignment.node_rank || failure.rank < 0) return text;
  std::vector<int> ranks;
  for (const int local_rank : ended_well_before(state, failure.rank - assignment.ranks.first_rank))
    ranks.push_back(assignment.ranks.first_rank + local_rank);
  if (ranks.empty()) return text;
  return text + fmt::format("\n  {} had ended before it, with exit code 0", rank_words(ranks));
}

int FinalReport::write(int code, const std::optional<Failure>& failure,
                       const std::string& why_not_again) const {
  const auto until = read_by();
  if (const size_t bytes = console->drain(until); bytes > 0) {
    console->put(2, fmt::format("lockstep run: {} of output were dropped: nobody read them",
                                counted(static_cast<int64_t>(bytes), "byte")));
  }
  if (!why_not_again.empty()) {
    console->put(2, "lockstep run: no further restart: " + why_not_again);
  }
  if (failure && options.started_by_starter) {
    console->put(1, std::string(kStarterMark) + "report " + to_json(*failure));
  } else if (failure) {
    console->put(2, report_of(*failure));
  }
  console->drain(until);
  const std::string lost = console->failure();
  if (lost.empty()) return code;
  console->put(2, "lockstep run: error: " + lost + "; the ranks' output is lost");
  console->drain(until);
  return code == 0 ? 1 : code;
}

}  // namespace

Agent::Agent(const RunOptions& options, const Environment& environment, Rendezvous* rendezvous,
             Console* console, std::string program)
    : options_(options),
      environment_(environment),
      rendezvous_(rendezvous),
      starter_(uses_fork_server(environment, options)),
      listing_(environment_),
      console_(console) {
  setup_ = {
      &options_, &environment_, std::move(program), agent_mark(), cores_for(options.nproc_per_node),
      &starter_, nullptr,       &poller_,           nullptr,      own_file_base(environment),
      0};
  state_.grace = options_.shutdown_timeout;
  state_.ending_signals = options_.ending_signals;
}

Agent::~Agent() {
  if (!watchdog_ || finished_) return;
  workers_.reset();
  kill_remaining_children({watchdog_->pid()});
}

int Agent::run() {
  adopt_orphans();
  start_watchdog();
  if (options_.num_nodes > 1) load_while_waiting();
  const auto assignment = rendezvous_->join();
  if (assignment) return run(*assignment);
  log_info("the job has ended well, without this host");
  return 0;
}

void Agent::start_watchdog() {
  // A group for each worker, and one for the process that they are forked from.
  watchdog_.emplace(std::vector<std::string>{"LOCKSTEP_AGENT=" + setup_.mark},
                    static_cast<size_t>(options_.nproc_per_node) + 1, own_files(),
                    listing_.files().size());
  setup_.watchdog = &*watchdog_;
}

void Agent::load_while_waiting() {
  WorkerEnvOptions known;
  known.agent = setup_.mark;
  known.cores = setup_.cores;
  if (!options_.cpus_of_ranks.empty()) known.cpus = options_.cpus_of_ranks[0];
  const auto environment = waiting_environment(environment_, options_.nproc_per_node, known);
  std::vector<Spawn> workers(2);  // the first and the last: they differ where any do
  for (size_t i = 0; i < workers.size(); ++i) {
    workers[i].path = setup_.program;
    workers[i].argv = with_local_rank(options_.command, i == 0 ? 0 : options_.nproc_per_node - 1);
    workers[i].environment = &environment;
  }
  starter_.load(workers);
  if (starter_.server() > 0) watchdog_->watch(starter_.server());
}

int Agent::run(const JobAssignment& assignment) {
  signals_.emplace(options_.ending_signals, options_.signals_named);
  starter_.interrupted_by(signals_->ending_fd());
  assignment_ = assignment;
  if (!options_.log_dir.empty() && options_.log_dir != kNoFiles)
    run_folder_ = make_run_folder(options_.log_dir, assignment_);
  poller_.add(signals_->fd(), kSignals);
  if (rendezvous_->fd() >= 0) poller_.add(rendezvous_->fd(), kStatus);
  listing_.begin();
  if (!run_folder_.empty() && ranks_write_files(options_, assignment_.ranks.local_size)) {
    room_.begin();
  }
  try {
    begin_generation(assignment_);
    // From here on it may end at any time, and the kernel may reuse its pid.
    if (starter_.server() > 0) watchdog_->forget(starter_.server());
    loop();
  } catch (const Error& error) {
    rendezvous_->failed(host_failure(assignment_, {1, 0}, error.what()));
    throw;
  }
  return finish();
}

void Agent::begin_generation(const JobAssignment& assignment) {
  assignment_ = assignment;
  leave_handled_ = false;
  handled_kill_by_.reset();
  if (rendezvous_->first_connection_fd() >= 0)
    poller_.add(rendezvous_->first_connection_fd(), kFirstConnection);
  if (rendezvous_->first_torch_connection_fd() >= 0)
    poller_.add(rendezvous_->first_torch_connection_fd(), kFirstTorchConnection);
  workers_.reset();
  if (lines_) lines_->flush();
  attempt_folder_ = run_folder_.empty() ? "" : make_attempt_folder(run_folder_, assignment_);
  lines_.emplace(job_lines(options_, environment_, assignment_, console_->kind(), attempt_folder_),
                 console_);
  setup_.lines = &*lines_;
  setup_.terminal_columns = lines_->columns(STDERR_FILENO);
  workers_.emplace(setup_, assignment_, attempt_folder_);
  if (!reading_) workers_->set_reading(false);
  if (listing_.written()) register_job();
  dispatch(GenerationStarted{workers_->size()});
}

/// Files that were there before may be missing for a moment, as on a file server. Workers that
/// cannot be started are therefore one more failure of the job.
void Agent::begin_again(const JobAssignment& assignment) {
  try {
    return begin_generation(assignment);
  } catch (const ExecError& error) {
    rendezvous_->failed(host_failure(assignment_, {126, 0}, error.what()));
  } catch (const Error& error) {
    rendezvous_->failed(host_failure(assignment_, {1, 0}, error.what()));
  }
  kill_remaining_children({watchdog_->pid(), starter_.server()});
  workers_.reset();
  rendezvous_->gone(false);
  ask_ = true;
}

/// Files that must not outlive this agent.
std::vector<std::string> Agent::own_files() const {
  std::vector<std::string> files = listing_.files();
  for (int local_rank = 0; local_rank < options_.nproc_per_node; ++local_rank) {
    files.push_back(fmt::format("{}.error_{}", setup_.error_base, local_rank));
  }
  return files;
}

/// For `lockstep ps` and its like.
void Agent::register_job() {
  listing_.write(assignment_, options_.command,
                 {run_folder_, attempt_folder_,
                  workers_ ? std::optional(workers_->steps_path()) : std::nullopt});
}

std::optional<Failure> Agent::first_failure() const {
  if (end_ && end_->failure) return end_->failure;
  if (!state_.first_failed) return std::nullopt;
  const auto& worker = state_.workers[static_cast<size_t>(*state_.first_failed)];
  return workers_->failure_of(*state_.first_failed, worker.status);
}

/// For the launcher that started this agent as its worker.
void Agent::pass_on_error_file(const Failure& failure) const {
  const auto ours = environment_.find("TORCHELASTIC_ERROR_FILE");
  if (ours == environment_.end() || failure.node_rank != assignment_.node_rank || failure.rank < 0)
    return;
  copy_error_file(workers_->error_file(failure.rank - assignment_.ranks.first_rank), ours->second,
                  failure.status.signal != 0 ? -failure.status.signal : failure.status.code);
}

int Agent::finish() {
  finished_ = kill_remaining_children({watchdog_->pid()});
  if (workers_) workers_->close_output();
  if (room_.due()) room_.look(attempt_folder_);
  lines_->flush();
  const auto failure = first_failure();
  if (failure) pass_on_error_file(*failure);
  const bool job_failed = end_ && end_->failure;
  const int code =
      exit_code(state_, job_failed ? std::optional(end_->failure->status) : std::nullopt);
  // A short run has not been listed. Its files have a name, and a failure may be looked up later.
  if (listing_.due() && (!run_folder_.empty() || code != 0)) register_job();
  listing_.remember_end(code, failure, assignment_.num_nodes);
  workers_.reset();
  listing_.remove();
  watchdog_->dismiss();
  // Nothing runs any more, and no file is left behind. From here on a signal ends this program,
  // even while its output has no reader.
  ::pthread_sigmask(SIG_SETMASK, &signals_->original_mask(), nullptr);
  return FinalReport{options_, assignment_, state_, console_}.write(
      code, failure, end_ ? end_->why_not_again : "");
}

}  // namespace lockstep::inline internal
