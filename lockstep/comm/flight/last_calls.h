#pragma once
// What each rank did last, for the error that ends a group.

#include <functional>
#include <string>
#include <vector>

#include "lockstep/comm/flight/record.h"
#include "lockstep/comm/group_impl.h"
#include "lockstep/error.h"

namespace lockstep {

/// What a rank did last, as another rank or host tells it.
struct LastCall {
  int rank = 0;          ///< In the world.
  std::string what;      ///< "all_reduce #12 (float32, 24.0 MiB) at main.cpp:88"; or nothing yet.
  bool inside = false;   ///< It is in it, or an error just ended it.
  double seconds = 0;    ///< Since it entered it, or, when it is not inside, since it left it.
  std::string process;   ///< process_state(), where it says something; else empty.
  std::string stack;     ///< to_string(Stack) of a suspect; else empty.
  uint64_t reached = 0;  ///< The last collective of the group that it has begun.
};

/// From `record`: the operation of `group` that it is in, else the last of any group (named, where
/// it is another one). `now_ns`: since the epoch.
LastCall last_call(const FlightRecord& record, const std::string& group, int64_t now_ns);

/// "ranks 0, 2: in barrier #3 for 4.0 s; rank 1 (stopped): done with all_reduce #2 (float32, 1.0
/// MiB) 4.1 s ago; rank 3: no word; stack of rank 1: pause < main". Ranks that did the same are
/// told together, with the longest time. `ranks`: all that there should be, in the world.
std::string last_calls_text(std::vector<LastCall> calls, const std::vector<int>& ranks);

/// Between hosts, through the store.
std::string encode_last_calls(const std::vector<LastCall>& calls);
/// Errors: kCorrupt.
std::vector<LastCall> decode_last_calls(const std::string& text);

/// Comes between the verdict and what the ranks did last.
inline constexpr const char* kLastOperations = "; last operations: ";

/// The recorders of this host's ranks, as far as they can be read.
std::vector<FlightRecord> records_here(const GroupSpec& spec);
/// What the ranks of these recorders did last in the group of `spec`.
std::vector<LastCall> last_calls_in(const std::vector<FlightRecord>& records,
                                    const GroupSpec& spec);

/// Tells the other ranks through the store what this host's ranks did last, unless one of them has
/// done so; `with_stacks`: and the stacks of those that live and are not where the others are.
/// Errors: the store's.
void tell_of_host(const GroupSpec& spec, bool with_stacks);

/// The verdict of `spec`'s group, which this rank has as `error`, with what each rank did last: one
/// text on all ranks, that of the first. One rank a host reads the recorders of its host, also
/// those of dead and frozen ranks (tell_of_host(), after a timeout with stacks). Hosts that say
/// nothing within a moment are asked: see diagnostics_thread.h. The first rank waits for the hosts
/// as long as one more of them has been heard in the last 300 ms (20 ms, when a rank died and one
/// host is silent), at most 500 ms, or a few looks on a machine too busy for more; for hosts that
/// have begun to tell, up to 3 s. Without a store it tells what this host knows. The first rank
/// calls `explain`, for what it knows better than `error`, when all have told.
Error with_last_calls(const GroupSpec& spec, const Error& error,
                      const std::function<Error(const Error& error)>& explain = {});

}  // namespace lockstep
