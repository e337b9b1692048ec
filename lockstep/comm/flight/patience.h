#pragma once
// Decides when a wait is a hang, from the durations of earlier calls, and which ranks are late. No
// input or output.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/comm/flight/last_calls.h"
#include "lockstep/comm/flight/layout.h"

namespace lockstep::inline internal {

/// Durations of the calls of one kind in one group, or of all its calls.
struct Experience {
  int64_t calls = 0;
  int64_t longest_ns = 0;
};

inline constexpr int64_t kFewestCalls = 20;
inline constexpr int64_t kPatience = 3;
inline constexpr int64_t kLeastPatienceNs = 1'000'000'000;
inline constexpr int64_t kLeastPatienceOfRareNs = 10'000'000'000;
inline constexpr int64_t kPatienceAtFirstNs = 30'000'000'000;

/// The time after which a call is overdue: kPatience times the longest so far, and at least
/// kLeastPatienceNs. With fewer than kFewestCalls of its kind (an evaluation's, a checkpoint's),
/// all calls of the group count, and the least is kLeastPatienceOfRareNs. If these are few as well,
/// as at a program's start, it is kPatienceAtFirstNs.
int64_t patience_ns(const Experience& of_kind, const Experience& of_group);

/// A call that has lasted too long.
struct Overdue {
  uint64_t number = 0;  ///< FlightEvent::number.
  uint16_t group = 0;   ///< FlightEvent::group.
  uint64_t sequence = 0;
  int32_t peer = -1;
  int64_t so_far_ns = 0;
  int64_t longest_ns = 0;  ///< Of earlier calls: of its kind, or of all if that is rare.
};

/// Follows one rank's flight recorder. Call look() a few times per second.
///
/// Only time in which its process ran counts as duration of a call. A process that stood still for
/// a minute has not waited for a minute, and learns nothing from it.
class Patience {
 public:
  /// `stopped_ns`: if two looks are farther apart, this process itself stood still.
  explicit Patience(int64_t stopped_ns = kLeastPatienceNs) : stopped_ns_(stopped_ns) {}

  /// Returns the calls that have become overdue since the last look, each once. `memory`: a copy of
  /// the recorder; `now_ns`: CLOCK_MONOTONIC. Cost: a walk over the events since the last look.
  std::vector<Overdue> look(const FlightMemory& memory, int64_t now_ns);
  /// Replaces a look if is_idle().
  void rest(int64_t now_ns) { looked_ns_ = now_ns; }
  /// The group has ended.
  void forget(uint16_t group);
  /// True if the call `number` was in progress at the last look.
  bool is_open(uint64_t number) const { return open_.contains(number); }
  /// True if nothing is in progress, and nothing has begun since the last look.
  bool is_idle(uint64_t events_begun) const { return open_.empty() && events_begun == seen_; }

 private:
  void learn(const FlightEvent& event, int64_t took_ns);

  int64_t stopped_ns_;
  uint64_t seen_ = 0;                 // events up to this one are in open_ or have ended
  std::map<uint64_t, int64_t> open_;  // how long they have lasted
  std::set<uint64_t> told_;           // the reported ones of these
  std::map<std::pair<uint16_t, std::string>, Experience> before_;  // by group and call
  std::map<uint16_t, Experience> of_group_;
  int64_t looked_ns_ = 0;
};

/// The world ranks of `ranks` that keep collective `sequence` of a group waiting: ranks without
/// a report, ranks that have not entered it, ranks stopped inside.
std::vector<int> late_for(const std::vector<LastCall>& calls, const std::vector<int>& ranks,
                          uint64_t sequence);

}  // namespace lockstep::inline internal
