#pragma once
// How the agents of a job find each other, agree on who runs which ranks, and learn of each
// other's failures: what an agent needs of it. Its loop is one thread that sleeps in epoll, so
// nothing but join() may wait; what waits does so in threads behind this interface, which block all
// signals.

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/launch/job/failure.h"
#include "lockstep/launch/job/run_options.h"
#include "lockstep/world/worker_env.h"

namespace lockstep {

/// The job is over.
struct JobEnd {
  std::optional<Failure> failure;  ///< None: well.
  std::string why_not_again;  ///< After a failure, where restarts were asked for; may be empty.
};

/// What an agent must know of the others.
struct JobNews {
  bool leave = false;              ///< This generation is over: stop the workers, then next().
  std::optional<Failure> failure;  ///< Its first failure, where that is why.
  std::string why;                 ///< Otherwise, in one line: "node 2 (hostb) left".
  std::chrono::seconds pause{0};   ///< Before the next generation, where that is known here.
  /// Until then the workers must be gone, whatever they still want to do: others may begin the next
  /// generation then, without hearing of this node.
  std::optional<std::chrono::steady_clock::time_point> kill_by;
  std::optional<JobEnd> end;  ///< There will be no other generation.
};

/// Calls come from one thread, in this order:
///
///   join ─▶ (workers run) ─▶ done ─────────────▶ news: end
///               │              │
///               │ failed, or   ▼
///               └▶ news: leave ─▶ gone ─▶ next ─▶ (workers run) ...
///                    └─ and any time: end
///
/// In a generation: failed() at most once, done() at most once, gone() once if there may be another
/// (after failed() it may come before the news is there). leave() may come at any time after
/// join(); then only news() follows. Destruction without it ends this node's part as if its host
/// had died.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;

  /// Waits for the other agents and returns the first generation's plan, in which all agree;
  /// nothing when the job has ended well without this node. Errors: kMismatch too when it failed;
  /// kTimeout naming the nodes that did not come, kMismatch (the nodes disagree), kInvalidArgument.
  virtual std::optional<JobPlan> join() = 0;

  /// Becomes readable when news() or next() has something to say; -1: they have nothing to say but
  /// right after a call of the agent's.
  virtual int fd() const { return -1; }

  /// What is known of this generation by now; the same again until next() has given a plan. Makes
  /// fd() wait for more. Cheap: it is asked after each call below.
  virtual JobNews news() = 0;

  /// A worker here failed first, or the agent did (rank -1). Others may have failed earlier: the
  /// failure in news() is the job's. Never throws, and takes up to some seconds when others hang.
  virtual void failed(const Failure& failure) = 0;

  virtual void done() = 0;  ///< All workers here ended well.
  /// After failed() or news().leave: all workers here have ended. `stepped`: one had made a step.
  virtual void gone(bool stepped) = 0;
  virtual void leave(int signal) = 0;  ///< This node was told to end by a signal.

  /// The next generation's plan, once it is there.
  virtual std::optional<JobPlan> next() = 0;

  /// A descriptor that becomes readable when serve() must be called; -1: never. Jobs that do not
  /// use the workers' store do not pay for its server. Another after each plan.
  virtual int knock_fd() const { return -1; }
  virtual void serve() {}
};

/// What `options` ask for. One host: nobody to meet, its workers' store on a free loopback port.
/// Several, or one where others may come: docs/design/rendezvous.md. `secret`: LOCKSTEP_SECRET,
/// which may only be empty where all is on loopback. Errors: kInvalidArgument (no secret, or the
/// back end cannot be used as it is asked for), kIo.
std::unique_ptr<Rendezvous> make_rendezvous(const RunOptions& options, const std::string& secret);

/// "20261120-103741-a1b2": a run's id where none is given; sorts by time.
std::string make_run_id();

}  // namespace lockstep
