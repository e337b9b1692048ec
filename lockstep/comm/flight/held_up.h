#pragma once
// Finds the ranks that hold up others, over all groups: a rank that is awaited in one group may
// itself wait in another. Pure functions of the ranks' flight records.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lockstep/comm/flight/record.h"

namespace lockstep::inline internal {

/// A call that a rank is in, or was in when an error ended it. A message that timed out also counts
/// until the rank begins another call.
struct OpenCall {
  std::string group;
  uint64_t sequence = 0;   ///< 0: point to point.
  int peer = -1;           ///< For point to point: its rank in the group.
  std::string what;        ///< "all_reduce #12 (float32, 24.0 MiB)"
  int64_t entered_ns = 0;  ///< Since the epoch.
  int64_t left_ns = 0;     ///< 0: the rank is in it.
  bool waits = true;       ///< Its caller waits for it; else the caller may do other work.
};

/// One rank's groups and calls, from its recorder.
struct RankCalls {
  struct Membership {
    int rank = 0;  ///< In the group.
    int size = 0;
    uint64_t reached = 0;  ///< The last collective that it has begun.
  };
  int rank = 0;           ///< In the world.
  bool runs = true;       ///< Its process is neither stopped nor dead.
  bool computes = false;  ///< One of its threads is running at this moment.
  std::map<std::string, Membership> groups;
  std::vector<OpenCall> open;
};
/// `state`: the result of process_state().
RankCalls calls_of(const FlightRecord& record, const std::string& state);

/// `rank` waits in `call` for `by`; both are world ranks.
struct Hold {
  int rank = 0;
  std::string call;
  int by = 0;
  bool operator==(const Hold&) const = default;
};

/// The end of a chain of waits.
struct HeldUp {
  std::vector<int> awaited;  ///< The ranks for which the call itself waits.
  std::vector<int> roots;    ///< Ranks that hold those up in the end, or some of those.
  std::vector<Hold> path;    ///< From the awaited ranks to the roots.
  bool operator==(const HeldUp&) const = default;
};

/// Follows the wait of `rank` in its call of `group` to ranks that wait for no rank or cannot run.
/// A rank that computes, and is only in calls for which its caller need not wait, waits for no
/// rank. Ranks of `ranks` that `all` lacks are assumed to be members of any group with unknown
/// members, if no known member is late. Calls that ended before that one began do not count. No
/// roots: ranks wait for each other, or for data.
HeldUp held_up(const std::vector<RankCalls>& all, const std::vector<int>& ranks, int rank,
               const std::string& group);
/// The same for a wait for `awaited`, a world rank, that began at `since_ns`.
HeldUp held_up_by(const std::vector<RankCalls>& all, const std::vector<int>& ranks, int awaited,
                  int64_t since_ns);
/// The same for an error that may belong to any rank's call in `group`: for a rank in its last
/// collective. Nothing if no rank is in one.
HeldUp held_up_in_collective(const std::vector<RankCalls>& all, const std::vector<int>& ranks,
                             const std::string& group);

/// The addition of `found` to a text that names found.awaited; "" if they are the roots. It is
/// "rank 3 holds up rank 0, which waits in all_reduce #4 (float32, 4 B) of group comm/1/ab.0 for
/// rank 2, ...", or names ranks that wait for each other.
std::string to_string(const HeldUp& found);

/// For the way between hosts, through the store.
std::string encode_rank_calls(const std::vector<RankCalls>& calls);
/// Errors: kCorrupt.
std::vector<RankCalls> decode_rank_calls(const std::string& text);

}  // namespace lockstep::inline internal
