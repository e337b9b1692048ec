#pragma once
// The present operations of all ranks of a group, from the flight recorders of all its hosts.

#include <chrono>
#include <string>
#include <vector>

#include "lockstep/comm/flight/held_up.h"
#include "lockstep/comm/flight/last_calls.h"
#include "lockstep/comm/group_impl.h"

namespace lockstep {

struct RankNews {
  std::vector<LastCall> last;    ///< In this group.
  std::vector<RankCalls> calls;  ///< In all groups.
};

/// News of this host, from the recorders as they are now.
RankNews news_here(const GroupSpec& spec);

/// News of all hosts. `token` identifies the request: "4.1234", the requesting rank and its call's
/// number. Hosts get the request through the store (diagnostics_thread.h), and are left out if they
/// do not answer within `patience`. Errors: the store's.
RankNews news_of_all(const GroupSpec& spec, const std::string& token,
                     std::chrono::milliseconds patience);

/// Writes this host's news for the rank that requested it as `token`. Errors: the store's.
void tell_news(const GroupSpec& spec, const std::string& token);

/// Removes the requests and answers of `token` from the store. Errors: the store's.
void forget_news(const GroupSpec& spec, const std::string& token);

}  // namespace lockstep
