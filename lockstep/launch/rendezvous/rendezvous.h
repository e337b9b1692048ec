#pragma once
// How the agents of a job find each other, agree on their ranks, and learn of each other's
// failures: the interface for an agent. The agent's loop is one thread that sleeps in epoll, so
// only join() may wait. All other waiting happens in threads behind this interface, which block all
// signals.

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/launch/job/failure.h"
#include "lockstep/launch/job/run_options.h"
#include "lockstep/world/worker_env.h"

namespace lockstep::inline internal {

/// The job is over.
struct JobEnd {
  std::optional<Failure> failure;  ///< None: the job ended well.
  std::string why_not_again;       ///< After a failure, if restarts were requested; may be empty.
};

/// The state of the job, as far as this agent has learned it from the others.
struct JobStatus {
  bool leave = false;              ///< This generation is over: stop the workers, then next().
  std::optional<Failure> failure;  ///< Its first failure, if that is the reason.
  std::string why;                 ///< Otherwise the reason, in one line: "host 2 (hostb) left".
  std::chrono::seconds pause{0};   ///< Before the next generation, if known here.
  /// The workers must be gone by then in any case: others may begin the next generation without
  /// this host.
  std::optional<std::chrono::steady_clock::time_point> kill_by;
  std::optional<JobEnd> end;  ///< No other generation follows.
};

/// Calls come from one thread, in this order:
///
///   join ─▶ (workers run) ─▶ done ─────────────▶ status: end
///               │              │
///               │ failed, or   ▼
///               └▶ status: leave ─▶ gone ─▶ next ─▶ (workers run) ...
///                      └─ and any time: end
///
/// In a generation: failed() at most once, done() at most once, gone() once if another may follow
/// (after failed() possibly before the status has `leave`). A call of leave() may come at any time
/// after join(); then only job_status() follows. Destruction without leave() ends this host's part
/// as if its host had died.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;

  /// Waits for the other agents and returns the first generation's assignment, in which all agree;
  /// nothing if the job has ended well without this host. Errors: kTimeout naming the missing
  /// hosts, kMismatch (the hosts disagree, or the job has failed), kInvalidArgument.
  virtual std::optional<JobAssignment> join() = 0;

  /// Becomes readable when job_status() or next() has a result; -1: they change only right after a
  /// call by the agent.
  virtual int fd() const { return -1; }

  /// The job's status in this generation. It is kept until next() has returned an assignment.
  /// Resets fd(). Cheap: it is called after each call below.
  virtual JobStatus job_status() = 0;

  /// A worker here failed first, or the agent did (rank -1). Others may have failed earlier: the
  /// failure in job_status() is the job's. Never throws; takes up to some seconds if others hang.
  virtual void failed(const Failure& failure) = 0;

  virtual void done() = 0;  ///< All workers here ended well.
  /// After failed() or job_status().leave: all workers here have ended. `stepped`: one had made a
  /// step.
  virtual void gone(bool stepped) = 0;
  virtual void leave(int signal) = 0;  ///< This host was told to end by a signal.

  /// The next generation's assignment, once it is available.
  virtual std::optional<JobAssignment> next() = 0;

  /// A descriptor that becomes readable when serve() must be called; -1: never. Jobs without use of
  /// the workers' store do not pay for its server. Changes with each assignment.
  virtual int first_connection_fd() const { return -1; }
  virtual void serve() {}
  /// The same for torch's own store.
  virtual int first_torch_connection_fd() const { return -1; }
  virtual void serve_torch() {}
};

/// The rendezvous that `options` require. One host alone: a workers' store on a free loopback port.
/// Several hosts, or one that others may join: docs/design/rendezvous.md. `secret`:
/// LOCKSTEP_SECRET, which may only be empty if all is on loopback. Errors: kInvalidArgument (no
/// secret, or unusable backend), kIo.
std::unique_ptr<Rendezvous> make_rendezvous(const RunOptions& options, const std::string& secret);

/// "20261120-103741-a1b2": a run's id if none is given; sorts by time.
std::string make_run_id();

}  // namespace lockstep::inline internal
