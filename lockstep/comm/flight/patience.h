#pragma once
// When a wait is a hang, told from how long the calls before it took; and who is late then. No
// input or output.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/comm/flight/last_calls.h"
#include "lockstep/comm/flight/layout.h"

namespace lockstep {

/// How long the calls of one kind took in one group, or all of its calls.
struct Experience {
  int64_t calls = 0;
  int64_t longest_ns = 0;
};

inline constexpr int64_t kFewestCalls = 20;
inline constexpr int64_t kPatience = 3;
inline constexpr int64_t kLeastPatienceNs = 1'000'000'000;
inline constexpr int64_t kLeastPatienceOfRareNs = 10'000'000'000;
inline constexpr int64_t kPatienceAtFirstNs = 30'000'000'000;

/// How long a call may take before it is overdue: kPatience times as long as any before, and at
/// least kLeastPatienceNs. Of fewer than kFewestCalls of its kind (an evaluation's, a checkpoint's)
/// all calls of the group tell, and it has kLeastPatienceOfRareNs; where these are few as well, as
/// when a program starts, kPatienceAtFirstNs.
int64_t patience_ns(const Experience& of_kind, const Experience& of_group);

/// A call that is under way for too long.
struct Overdue {
  uint64_t number = 0;  ///< FlightEvent::number.
  uint16_t group = 0;   ///< FlightEvent::group.
  uint64_t sequence = 0;
  int32_t peer = -1;
  int64_t so_far_ns = 0;
  int64_t longest_ns = 0;  ///< Of those before: of its kind, or of all where that is rare.
};

/// Follows what one rank's recorder says. Call look() a few times a second.
///
/// A call lasts as long as its process ran meanwhile: who stood still for a minute has not waited
/// for a minute, and has not learned that a call may take that long.
class Patience {
 public:
  /// `stopped_ns`: between two looks that are farther apart this process itself stood still.
  explicit Patience(int64_t stopped_ns = kLeastPatienceNs) : stopped_ns_(stopped_ns) {}

  /// Returns the calls that have become overdue since the last look, each once. `memory`: a copy of
  /// the recorder; `now_ns`: CLOCK_MONOTONIC. Cost: a walk over the events since the last look.
  std::vector<Overdue> look(const FlightMemory& memory, int64_t now_ns);
  /// In the place of a look when is_idle().
  void rest(int64_t now_ns) { looked_ns_ = now_ns; }
  /// The group has ended.
  void forget(uint16_t group);
  /// The call `number` is under way, as far as the last look saw.
  bool is_open(uint64_t number) const { return open_.contains(number); }
  /// Nothing is under way, and nothing has begun since the last look.
  bool is_idle(uint64_t events_begun) const { return open_.empty() && events_begun == seen_; }

 private:
  void learn(const FlightEvent& event, int64_t took_ns);

  int64_t stopped_ns_;
  uint64_t seen_ = 0;                 // events up to this one are in open_ or have ended
  std::map<uint64_t, int64_t> open_;  // how long they have lasted
  std::set<uint64_t> told_;           // of those
  std::map<std::pair<uint16_t, std::string>, Experience> before_;  // by group and call
  std::map<uint16_t, Experience> of_group_;
  int64_t looked_ns_ = 0;
};

/// The world ranks, of `ranks`, that keep collective `sequence` of a group waiting: of whom there
/// is no word, who have not come to it, and who are in it but stopped.
std::vector<int> late_for(const std::vector<LastCall>& calls, const std::vector<int>& ranks,
                          uint64_t sequence);

}  // namespace lockstep
