#pragma once
// The allowed silence of an agent, and the interval of its heartbeats.

#include <chrono>
#include <cstdint>
#include <memory>

#include "lockstep/base/standstill.h"
#include "lockstep/deadline.h"
#include "lockstep/launch/job/run_options.h"
#include "lockstep/launch/rendezvous/rendezvous_backend.h"

namespace lockstep::inline internal {

/// Whether a job can go on after the loss of a host: with fewer, or with another that comes.
inline bool can_change(const RunOptions& options) {
  return options.min_nodes < options.num_nodes || options.max_restarts > 0;
}

/// Time between two heartbeats: the requested one, or more if there are many agents, so that the
/// server gets at most 10,000 a second.
std::chrono::milliseconds heartbeat_interval(std::chrono::milliseconds asked, int64_t num_agents);

struct Silence {
  std::chrono::milliseconds interval{200};  ///< Between two heartbeats.
  std::chrono::milliseconds limit{2000};    ///< After this silence an agent, or the store, counts
                                            ///< as dead.
};

/// From keep_alive_interval and keep_alive_max_attempt. If neither is given:
///   * at least 30 s in a job that cannot change: a host's pause costs less than the job's end;
///   * at least 10 s if heartbeats are renewals of a lease (`by_lease`), since the service may be
///     late.
/// A lease is renewed three times in its time, whatever the interval: each renewal costs all users
/// of the service.
Silence allowed_silence(const RunOptions& options, bool by_lease, int64_t num_agents = 0);

/// An agent's contact with the rendezvous store: when the store last answered, and when others may
/// take the agent for dead. Used by one thread.
class Contact {
 public:
  using Time = std::chrono::steady_clock::time_point;
  Contact(const RunOptions& options, const RendezvousBackend* backend);

  const Silence& allowed() const { return allowed_; }
  /// Number of agents that send heartbeats there.
  void count_agents(int64_t num_agents);

  /// The store has answered.
  void heard();
  /// The store did not answer a call in time; warns the user once.
  void report_silence();
  /// When the store is given up.
  Time lost_at() const { return heard_at_.when() + allowed_.limit; }

  /// A heartbeat begun at `began` was accepted.
  void heartbeat_accepted(Deadline began) { heartbeat_began_ = began; }
  /// Earliest time at which the others may take this agent for dead and begin a generation without
  /// its workers. Counts from the beginning of the last accepted heartbeat.
  Time fence() const { return heartbeat_began_.when() + allowed_.limit - allowed_.limit / 10; }

 private:
  const RunOptions& options_;
  const RendezvousBackend* const backend_;
  /// A standstill of all ranks counts for no silence: the pulse moves these times.
  const std::shared_ptr<Pulse> pulse_ = Pulse::of_process();
  Silence allowed_;
  Deadline heard_at_ = Deadline::after(std::chrono::milliseconds(0));
  Deadline heartbeat_began_ = heard_at_;
  bool reported_ = false;
};

}  // namespace lockstep::inline internal
