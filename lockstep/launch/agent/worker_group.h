#pragma once
// One generation's workers on this host: their processes, their output, and how they ended.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/process_handle.h"
#include "lockstep/launch/agent/agent_state.h"
#include "lockstep/launch/agent/watchdog.h"
#include "lockstep/launch/agent/worker_output.h"
#include "lockstep/launch/agent/worker_starter.h"
#include "lockstep/launch/job/progress_memory.h"
#include "lockstep/launch/job/run_options.h"
#include "lockstep/launch/process/poller.h"
#include "lockstep/world/worker_env.h"

namespace lockstep::inline internal {

/// Poller tags of a worker's events; the low half of a tag is its local rank.
enum WorkerTag : uint64_t {
  kWorkerEnded = 1ULL << 32,
  kWorkerOut = 2ULL << 32,
  kWorkerErr = 3ULL << 32,
};

/// Shared by all generations, and outlives them.
struct WorkerSetup {
  const RunOptions* options;
  const Environment* environment;
  std::string program;  ///< Path of the program in `options`.
  std::string mark;     ///< LOCKSTEP_AGENT: only in the environment of its workers' processes.
  int cores = 1;
  WorkerStarter* starter;
  Watchdog* watchdog;
  Poller* poller;
  WorkerLines* lines;
  std::string error_base;    ///< Base name of error files if there is no log folder.
  int terminal_columns = 0;  ///< Columns for a worker's lines on stderr; 0: no terminal.
};

class WorkerGroup {
 public:
  /// log_folder: this generation's; empty: none. If a signal interrupts the loading of a program,
  /// there are no workers. Errors: kIo (a worker could not be started, or a log file not be
  /// written); no worker is left then.
  WorkerGroup(const WorkerSetup& setup, const JobAssignment& assignment, std::string log_folder);
  ~WorkerGroup();  ///< Kills the remaining workers.
  WorkerGroup(const WorkerGroup&) = delete;
  WorkerGroup& operator=(const WorkerGroup&) = delete;

  Steps steps() const { return steps_.steps(); }
  /// Path of the file with the workers' steps.
  std::string steps_path() const { return steps_.path(); }
  /// Announces to the workers that the generation is over because hosts came or went, not because
  /// the job ended.
  void announce_job_goes_on() const { steps_.announce_job_goes_on(); }
  int size() const { return static_cast<int>(workers_.size()); }

  /// How that worker ended; nothing if it has not. For the first that did not end well, also which
  /// others are dying.
  std::optional<WorkerEnded> take_end(int local_rank);

  /// Local ranks of ended workers whose group has no process left now.
  std::vector<int> gone_groups();

  bool runs(pid_t pid) const;
  void send(const std::vector<int>& local_ranks, int signal) const;

  void read(uint64_t tag);
  void set_reading(bool on);
  void close_output();

  Failure failure_of(int local_rank, const ExitStatus& status) const;
  /// File for the worker's report of its failure; empty: none.
  std::string error_file(int local_rank) const;

 private:
  struct Worker {
    pid_t pid = -1;
    ProcessHandle process;  ///< Until the worker is reaped.
    std::unique_ptr<WorkerOutput> out;
    std::unique_ptr<WorkerOutput> err;
    AgentTime started;
    double seconds = 0;        ///< From start to end.
    bool ended_group = false;  ///< The worker ended; its group may have other processes.
  };
  bool start(int first, int end);
  void watch(int local_rank);
  Environment environment_of(int local_rank) const;
  std::unique_ptr<WorkerOutput> open_output(int local_rank, int stream) const;
  std::vector<int> cpus_of(int local_rank) const;
  std::string folder_of(int local_rank) const;
  void kill_all();
  void remove_error_files() const;
  void drain(Worker* worker);

  const WorkerSetup setup_;
  const JobAssignment assignment_;
  const std::string log_folder_;
  const ProgressMemory steps_;
  std::vector<Worker> workers_;
  bool failed_ = false;  ///< A worker did not end well.
};

}  // namespace lockstep::inline internal
