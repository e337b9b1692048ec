#pragma once
// Starts one host's workers, passes on their output and the user's signals, and starts the next
// generation. When one worker fails, it ends all. agent_state.h decides; this class acts, in one
// thread that sleeps in epoll_wait.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/launch/agent/agent_state.h"
#include "lockstep/launch/agent/job_listing.h"
#include "lockstep/launch/agent/log_folder.h"
#include "lockstep/launch/agent/watchdog.h"
#include "lockstep/launch/agent/worker_group.h"
#include "lockstep/launch/job/run_options.h"
#include "lockstep/launch/process/console.h"
#include "lockstep/launch/process/poller.h"
#include "lockstep/launch/process/signals.h"
#include "lockstep/launch/rendezvous/rendezvous.h"

namespace lockstep::inline internal {

class Agent {
 public:
  /// `rendezvous` and `console` must outlive the agent. `program`: path of the program in
  /// `options`.
  Agent(const RunOptions& options, const Environment& environment, Rendezvous* rendezvous,
        Console* console, std::string program);
  ~Agent();

  /// Joins the job and runs it to its end. Prints the report of a failure last; returns the exit
  /// code. Signals have their default effect until the job begins; a program with a fork server is
  /// loaded meanwhile. Errors: those of Rendezvous::join(); kIo (a worker could not be started, or
  /// a log file not be written). No worker is left after an error.
  int run();

 private:
  /// Poller tags besides those of workers (worker_group.h).
  enum AgentTag : uint64_t {
    kSignals = 16ULL << 32,
    kStatus = 17ULL << 32,
    kConsole = 18ULL << 32,
    kFirstConnection = 19ULL << 32,
    kFirstTorchConnection = 20ULL << 32,
  };

  void start_watchdog();
  void load_while_waiting();
  int run(const JobAssignment& assignment);
  void begin_generation(const JobAssignment& assignment);
  void begin_again(const JobAssignment& assignment);
  void loop();
  int wait_ms() const;
  void on_ready(uint64_t tag);
  void on_signals();
  void suspend();
  void resume();
  void on_first_connection();
  void on_first_torch_connection();
  void reap_orphans();
  void read_status();
  void report_restart(const JobStatus& status);
  void flush_console();
  void register_job();
  std::vector<std::string> own_files() const;
  void pass_on_error_file(const Failure& failure) const;

  void dispatch(const AgentEvent& event);
  void act(const SendSignal& action);
  void act(const PublishFailure& action);
  void act(const PublishSignal& action);
  void act(const PublishSuccess& action);
  void act(const PublishGone& action);
  void act(const ReportWaiting& action);

  int finish();
  std::optional<Failure> first_failure() const;

  const RunOptions options_;
  const Environment environment_;
  JobAssignment assignment_;
  Rendezvous* const rendezvous_;
  std::string run_folder_;
  std::string attempt_folder_;
  WorkerSetup setup_;

  AgentState state_;
  std::optional<SignalGate> signals_;  ///< Set when the job begins.
  WorkerStarter starter_;
  JobListing listing_;
  LogRoom room_;
  std::optional<Watchdog> watchdog_;
  Console* const console_;
  std::optional<WorkerLines> lines_;
  Poller poller_;
  std::optional<WorkerGroup> workers_;  ///< Empty between two generations, if none could start.
  bool reading_ = true;
  int watched_stream_ = -1;  ///< Stream of the console that is polled for POLLOUT.
  bool orphans_ended_ = false;
  bool ask_ = false;            ///< The job's status may have changed.
  bool leave_handled_ = false;  ///< A job status with leave has been taken in this generation.
  bool finished_ = false;       ///< No child was left but the watchdog.
  std::optional<AgentTime> handled_kill_by_;
  std::optional<AgentTime> suspended_since_;  ///< When the ranks were stopped.
  std::optional<JobEnd> end_;
};

}  // namespace lockstep::inline internal
