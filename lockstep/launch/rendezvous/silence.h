#pragma once
// For how long an agent may be silent, and how often it says that it lives.

#include <chrono>
#include <cstdint>
#include <memory>

#include "lockstep/base/standstill.h"
#include "lockstep/deadline.h"
#include "lockstep/launch/job/run_options.h"
#include "lockstep/launch/rendezvous/meeting_place.h"

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

/// How an agent stands with its meeting place: when that last answered, and when others may take
/// the agent for dead. Used by one thread.
class Contact {
 public:
  using Time = std::chrono::steady_clock::time_point;
  Contact(const RunOptions& options, const MeetingPlace* place);

  const Silence& allowed() const { return allowed_; }
  /// Signs of life of so many agents are given there.
  void count_agents(int64_t num_agents);

  /// The place has answered.
  void heard();
  /// It did not, in the time of a call: said to the user, once.
  void say_silence();
  /// When it is given up.
  Time lost_at() const { return heard_at_.when() + allowed_.limit; }

  /// A sign of life was taken that was begun at `began`.
  void sign_taken(Deadline began) { sign_began_ = began; }
  /// When the others may take this agent for dead, and begin a generation without its workers, at
  /// the earliest: its last sign of life was taken when it was given, or later.
  Time fence() const { return sign_began_.when() + allowed_.limit - allowed_.limit / 10; }

 private:
  const RunOptions& options_;
  const MeetingPlace* const place_;
  /// Who stood still with all others has missed nothing of theirs: such times move with him.
  const std::shared_ptr<Pulse> pulse_ = Pulse::of_process();
  Silence allowed_;
  Deadline heard_at_ = Deadline::after(std::chrono::milliseconds(0));
  Deadline sign_began_ = heard_at_;
  bool said_ = false;
};

}  // namespace lockstep
