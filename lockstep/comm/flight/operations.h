#pragma once
// The present operations of all ranks of a group, from the flight recorders of all its hosts.

#include <chrono>
#include <string>
#include <vector>

#include "lockstep/comm/flight/held_up.h"
#include "lockstep/comm/flight/last_calls.h"
#include "lockstep/comm/group_impl.h"

namespace lockstep::inline internal {

struct RankOperations {
  std::vector<LastCall> last;    ///< In this group.
  std::vector<RankCalls> calls;  ///< In all groups.
};

/// The operations of this host's ranks, from the recorders as they are now.
RankOperations operations_here(const GroupSpec& spec);

/// The operations of all hosts' ranks. `token` identifies the request: "4.1234", the requesting
/// rank and its call's number. Hosts get the request through the store (diagnostics_thread.h), and
/// are left out if they do not answer within `patience`. Errors: the store's.
RankOperations operations_of_all(const GroupSpec& spec, const std::string& token,
                                 std::chrono::milliseconds patience);

/// Writes the operations of this host's ranks for the rank that requested them as `token`. Errors:
/// the store's.
void write_operations(const GroupSpec& spec, const std::string& token);

/// Removes the requests and answers of `token` from the store. Errors: the store's.
void remove_operations(const GroupSpec& spec, const std::string& token);

}  // namespace lockstep::inline internal
