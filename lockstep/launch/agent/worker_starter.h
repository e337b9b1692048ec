#pragma once
// Starts workers: each by itself, or forked from one process of a program that asked for it
// (warm_start.h).

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "lockstep/base/unique_fd.h"
#include "lockstep/launch/job/run_options.h"
#include "lockstep/launch/process/program.h"
#include "lockstep/world/environment.h"

namespace lockstep {

/// Not for a single worker that is started once, and at once: forking it from another process gains
/// nothing. LOCKSTEP_WARM_START=0: never.
bool wants_warm_start(const Environment& environment, const RunOptions& options);

class WorkerStarter {
 public:
  /// Workers have the signals blocked that are now. warm: whether to look for warm_start() in a
  /// program.
  explicit WorkerStarter(bool warm);

  /// Begins to load the program of `workers` if it asks for that, and returns: for who has to wait
  /// before they start. Where that cannot be done, start() does it and says so.
  void load(const std::vector<Spawn>& workers);

  /// `interrupt`: readable when a signal wants to end this.
  void interrupted_by(int interrupt) { interrupt_ = interrupt; }

  /// Starts all, by the same program. The first call of a program that asks for it loads it, which
  /// may take long; nothing else is done meanwhile, but an interrupt ends it, and nobody is
  /// started: the result is empty. One that does not keep its word is started as any other, and the
  /// user is told. Returns the pids in order; all are this process's children, also those of a call
  /// that throws. Errors: ExecError, kIo.
  std::vector<pid_t> start(const std::vector<Spawn>& workers);

  /// Of the process that ranks are forked from: a child; 0: none. It ends with this object.
  pid_t server() const { return socket_ ? server_ : 0; }

 private:
  void start_server(const std::vector<Spawn>& workers);
  bool await_server();
  void fork_all(const std::vector<Spawn>& workers, std::vector<pid_t>* pids);
  void kill_server();
  void give_up(const std::string& why);

  sigset_t mask_{};
  bool warm_;
  int interrupt_ = -1;
  bool tried_ = false;
  bool loading_ = false;  ///< The process that ranks are forked from has not said yet that it can.
  std::string program_;   ///< That was tried.
  UniqueFd socket_;
  pid_t server_ = 0;
  UniqueFd server_pidfd_;
};

/// `lockstep VERB ...` as the program that it would execute, where that asks for a warm start.
Spawn resolved(Spawn worker);

}  // namespace lockstep
