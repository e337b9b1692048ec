#pragma once
// Who holds up whom, over all groups: a rank that others wait for in one group may itself wait in
// another. Pure functions of what the ranks' flight recorders say.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lockstep/comm/flight/record.h"

namespace lockstep {

/// A call that a rank is in, or was in when an error ended it. So also a letter whose time was
/// over, as long as the rank has begun nothing since.
struct OpenCall {
  std::string group;
  uint64_t sequence = 0;   ///< 0: point to point.
  int peer = -1;           ///< Of point to point: its rank in the group.
  std::string what;        ///< "all_reduce #12 (float32, 24.0 MiB)"
  int64_t entered_ns = 0;  ///< Since the epoch.
  int64_t left_ns = 0;     ///< 0: the rank is in it.
  bool waits = true;       ///< Its caller waits for it; else it may do other things meanwhile.
};

/// What one rank's recorder says of its groups.
struct RankCalls {
  struct Membership {
    int rank = 0;  ///< In the group.
    int size = 0;
    uint64_t reached = 0;  ///< The last collective that it has begun.
  };
  int rank = 0;           ///< In the world.
  bool runs = true;       ///< Its process is neither stopped nor dead.
  bool computes = false;  ///< One of its threads runs at this moment.
  std::map<std::string, Membership> groups;
  std::vector<OpenCall> open;
};
/// `state`: process_state().
RankCalls calls_of(const FlightRecord& record, const std::string& state);

/// `rank` waits in `call` for `by`; both in the world.
struct Hold {
  int rank = 0;
  std::string call;
  int by = 0;
  bool operator==(const Hold&) const = default;
};

/// What stands at the end of a wait.
struct HeldUp {
  std::vector<int> awaited;  ///< For whom the wait itself is.
  std::vector<int> roots;    ///< By whom those are held up in the end, or some of them themselves.
  std::vector<Hold> path;    ///< From the ones to the others.
  bool operator==(const HeldUp&) const = default;
};

/// Follows the wait of `rank` in the call of `group` that it is in to those that wait for nobody or
/// cannot run. Who computes and is only in calls that it need not wait for waits for nobody. Those
/// of `ranks` of which `all` has no word are taken for members of a group that has more than are
/// known, where none of those is late. Calls that had ended when that one began are none. No roots:
/// ranks wait for each other, or for data.
HeldUp held_up(const std::vector<RankCalls>& all, const std::vector<int>& ranks, int rank,
               const std::string& group);
/// The same for a wait that is for `awaited`, a rank of the world, and began at `since_ns`.
HeldUp held_up_by(const std::vector<RankCalls>& all, const std::vector<int>& ranks, int awaited,
                  int64_t since_ns);
/// The same for an error that may be of any rank's call in `group`: of a rank in its last
/// collective; nothing where no rank is in one.
HeldUp held_up_in_collective(const std::vector<RankCalls>& all, const std::vector<int>& ranks,
                             const std::string& group);

/// What `found` adds to a text that names found.awaited: "" where they are the roots, else "rank 3
/// holds up rank 0, which waits in all_reduce #4 (float32, 4 B) of group comm/1/ab.0 for rank 2,
/// ..."; or which ranks wait for each other.
std::string to_string(const HeldUp& found);

/// Between hosts, through the store.
std::string encode_rank_calls(const std::vector<RankCalls>& calls);
/// Errors: kCorrupt.
std::vector<RankCalls> decode_rank_calls(const std::string& text);

}  // namespace lockstep
