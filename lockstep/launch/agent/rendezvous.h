#pragma once
// How the agents of a job find each other and agree on who runs which ranks.

#include <memory>

#include "lockstep/launch/agent/run_options.h"
#include "lockstep/launch/agent/worker_env.h"
#include "lockstep/store/store.h"

namespace lockstep {

class Rendezvous {
 public:
  virtual ~Rendezvous() = default;

  /// Waits for the other agents and returns what all agreed on. Errors: kTimeout naming the nodes
  /// that did not come, kMismatch (the nodes disagree), kInvalidArgument.
  virtual JobPlan join() = 0;

  /// Where the agents go on talking; null when this node is alone.
  virtual std::shared_ptr<Store> store() const = 0;

  /// A descriptor that becomes readable when serve() must be called; -1: never. Jobs that do not
  /// use the store do not pay for its server.
  virtual int knock_fd() const = 0;
  virtual void serve() = 0;
};

/// A fixed number of nodes, each with its rank given, that meet at the store that node 0's agent
/// serves at --master_addr:--master_port. One node: nothing to agree on; its agent serves the
/// workers' store on a free loopback port. `secret`: LOCKSTEP_SECRET, may be empty; one node makes
/// its own, several need one unless they meet on loopback. A node whose --rdzv_id is not node 0's
/// does not join, nor one that finds a store in which there is no node 0.
std::unique_ptr<Rendezvous> make_static_rendezvous(const RunOptions& options,
                                                   const std::string& secret);

}  // namespace lockstep
