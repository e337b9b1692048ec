#pragma once
// Starts one node's workers, passes on their output and the user's signals, and sees to it that
// all end when one fails. Decisions are agent_state.h's; this carries them out, in one thread that
// sleeps in epoll_wait.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/launch/agent/agent_state.h"
#include "lockstep/launch/agent/console.h"
#include "lockstep/launch/agent/guard.h"
#include "lockstep/launch/agent/rendezvous.h"
#include "lockstep/launch/agent/run_options.h"
#include "lockstep/launch/agent/signals.h"
#include "lockstep/launch/agent/worker_env.h"
#include "lockstep/launch/agent/worker_output.h"

namespace lockstep {

class Agent {
 public:
  /// `plan`: what `rendezvous` returned; it must outlive the agent. `program`: path of options'
  /// program.
  Agent(const RunOptions& options, const Environment& environment, const JobPlan& plan,
        Rendezvous* rendezvous, std::string program);
  ~Agent();

  /// Runs the job to its end, prints the report of a failure last, and returns the exit code.
  /// Errors: kIo (a worker cannot be started, a log file not be written); none is left then.
  int run();

 private:
  struct Worker {
    pid_t pid = -1;
    UniqueFd pidfd;
    std::unique_ptr<WorkerOutput> out;
    std::unique_ptr<WorkerOutput> err;
    AgentTime started;
    double seconds = 0;        ///< From start to end.
    bool ended_group = false;  ///< The worker ended; its group may have others.
  };

  void start_workers();
  void start_worker(int local_rank);
  std::unique_ptr<WorkerOutput> open_output(int local_rank, int stream) const;
  std::string worker_folder(int local_rank) const;

  void loop();
  int wait_ms() const;
  void on_ready(uint64_t tag);
  void on_worker_ended(int local_rank);
  void on_signals();
  void on_news();
  void on_knock();
  void reap_orphans();
  void check_groups();
  void flush_console();
  void set_reading(bool on);
  void watch_fd(int fd, uint64_t tag);

  void tell(const AgentEvent& event);
  void act(const SendSignal& action);
  void act(const PublishFailure& action);
  void act(const PublishSignal& action);
  void act(const PublishSuccess& action);
  void act(const SayWaiting& action);

  Failure failure_of(int local_rank) const;
  int finish();

  const RunOptions options_;
  const Environment environment_;
  const JobPlan plan_;
  Rendezvous* const rendezvous_;
  const std::string program_;
  std::string log_folder_;
  const int cores_;

  AgentState state_;
  SignalGate signals_;
  std::optional<Guard> guard_;
  Console console_;
  UniqueFd epoll_;
  std::vector<Worker> workers_;
  bool reading_ = true;
  int watched_stream_ = -1;  ///< Of the console, for POLLOUT.
  bool orphans_ended_ = false;
  std::optional<JobEnd> end_;
};

}  // namespace lockstep
