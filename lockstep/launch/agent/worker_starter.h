#pragma once
// Starts workers: each by itself, or forked from one process of a program that calls
// start_fork_server() (spawn.h).

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "lockstep/base/process_handle.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/launch/job/run_options.h"
#include "lockstep/launch/process/program.h"
#include "lockstep/world/environment.h"

namespace lockstep::inline internal {

/// False for a single worker that is started once and at once: a fork from another process gains
/// nothing there. LOCKSTEP_FORK_SERVER=0: never.
bool uses_fork_server(const Environment& environment, const RunOptions& options);

class WorkerStarter {
 public:
  /// Workers get the present signal mask. use_fork_server: whether to look for start_fork_server()
  /// in a program.
  explicit WorkerStarter(bool use_fork_server);

  /// Begins to load the program of `workers` if it has a fork server, and returns: useful while the
  /// caller waits. Where this is impossible, start() loads the program and logs that.
  void load(const std::vector<Spawn>& workers);

  /// `interrupt`: a descriptor that is readable when a signal must end this.
  void interrupted_by(int interrupt) { interrupt_ = interrupt; }

  /// Starts all workers, by the same program; returns their pids in order. All are this process's
  /// children, also those of a call that throws.
  ///
  /// The first call loads a program with a fork server, which may take long. An interrupt ends the
  /// loading; no worker is started then, and the result is empty. If the program breaks the
  /// protocol, its ranks are started one by one, with a warning. Errors: ExecError, kIo.
  std::vector<pid_t> start(const std::vector<Spawn>& workers);

  /// Pid of the fork server, a child of this process; 0: none. It ends with this object.
  pid_t server() const { return socket_ ? server_ : 0; }

 private:
  void start_server(const std::vector<Spawn>& workers);
  bool await_server();
  void fork_all(const std::vector<Spawn>& workers, std::vector<pid_t>* pids);
  void kill_server();
  void give_up(const std::string& why);

  sigset_t mask_{};
  bool use_fork_server_;
  int interrupt_ = -1;
  bool tried_ = false;
  bool loading_ = false;  ///< The fork server has not reported yet that it is ready.
  std::string program_;   ///< The program that was tried.
  UniqueFd socket_;
  pid_t server_ = 0;
  ProcessHandle server_process_;
};

/// `lockstep VERB ...` as the program that it would execute, if that has a fork server.
Spawn resolved(Spawn worker);

}  // namespace lockstep::inline internal
