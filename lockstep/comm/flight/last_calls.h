#pragma once
// The last operation of each rank, for the error that ends a group.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/comm/flight/record.h"
#include "lockstep/comm/group_impl.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

/// A rank's last operation, as another rank or host reports it.
struct LastCall {
  int rank = 0;          ///< In the world.
  std::string what;      ///< "all_reduce #12 (float32, 24.0 MiB) at main.cpp:88"; empty: none yet.
  bool inside = false;   ///< The rank is in it, or an error just ended it.
  double seconds = 0;    ///< Since it entered it or, if it is not inside, since it left it.
  std::string process;   ///< process_state(), if it is informative; else empty.
  std::string stack;     ///< to_string(Stack) of a rank elsewhere; else empty.
  uint64_t reached = 0;  ///< The last collective of the group that the rank has begun.
};

/// From `record`: the operation of `group` that it is in, else the last of any group (with the name
/// of another group). `now_ns`: ns_since_1970().
LastCall last_call(const FlightRecord& record, const std::string& group, int64_t now_ns);

/// "ranks 0, 2: in barrier #3 for 4.0 s; rank 1 (stopped): done with all_reduce #2 (float32, 1.0
/// MiB) 4.1 s ago; rank 3: no word; stack of rank 1: pause < main". Ranks with the same operation
/// are listed together, with the longest time. `ranks`: all expected ranks, in the world.
std::string last_calls_text(std::vector<LastCall> calls, const std::vector<int>& ranks);

/// For the way between hosts, through the store.
std::string encode_last_calls(const std::vector<LastCall>& calls);
/// Errors: kCorrupt.
std::vector<LastCall> decode_last_calls(const std::string& text);

/// Separates the group error from the last operations.
inline constexpr const char* kLastOperations = "; last operations: ";

/// The recorders of this host's ranks, as far as they are readable.
std::vector<FlightRecord> records_here(const GroupSpec& spec);
/// The ranks' last operations in the group of `spec`, from these recorders.
std::vector<LastCall> last_calls_in(const std::vector<FlightRecord>& records,
                                    const GroupSpec& spec);

/// Reports the last operations of this host's ranks through the store, unless another rank of the
/// host has done so. `with_stacks`: adds the stacks of live ranks that are not in the others'
/// operation. Errors: the store's.
void tell_of_host(const GroupSpec& spec, bool with_stacks);

/// The error of `spec`'s group, which this rank has as `error`, with the last operation of each
/// rank. All ranks get one text, that of the first. One rank per host reads the recorders of its
/// host, also those of dead and frozen ranks (tell_of_host(), after a timeout with stacks). Hosts
/// that do not report soon get a request: see diagnostics_thread.h. The first rank waits at most
/// 500 ms, and only while another host has reported in the last 300 ms. If a rank died and one host
/// is silent, the 300 ms are 20 ms. On a busy machine it waits for at least a few looks; for hosts
/// that have begun to report, up to 3 s. Without a store it reports this host's ranks only. When
/// all have reported, the first rank calls `explain`, which may know more than `error`.
Error with_last_calls(const GroupSpec& spec, const Error& error,
                      const std::function<Error(const Error& error)>& explain = {});

}  // namespace lockstep::inline internal
