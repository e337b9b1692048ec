#pragma once
// For how long an agent may be silent, and how often it says that it lives. Pure.

#include <chrono>
#include <cstdint>

#include "lockstep/launch/job/run_options.h"

namespace lockstep {

/// Whether a job that lost a node can go on: with fewer, or with another that comes.
inline bool can_change(const RunOptions& options) {
  return options.min_nodes < options.num_nodes || options.max_restarts > 0;
}

/// Between two signs of life: as asked for, or more where so many agents give them that the server
/// would be kept busy by them: 10,000 a second at most.
std::chrono::milliseconds beat_interval(std::chrono::milliseconds asked, int64_t num_agents);

struct Silence {
  std::chrono::milliseconds interval{200};  ///< Between two signs of life.
  std::chrono::milliseconds limit{2000};    ///< Then an agent, or the place, is taken for dead.
};

/// As asked for by keep_alive_interval and keep_alive_max_attempt. Where neither is given:
///   * at least 30 s in a job that cannot change: a node that pauses costs it less than its end;
///   * at least 10 s where signs of life are renewals of a lease (`by_lease`), which the service
///     itself may be late to take.
/// A lease is renewed three times in its time, whatever the interval: each costs all who share the
/// service.
Silence allowed_silence(const RunOptions& options, bool by_lease, int64_t num_agents = 0);

}  // namespace lockstep
