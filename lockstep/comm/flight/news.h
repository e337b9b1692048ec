#pragma once
// What all ranks of a group do now, from the flight recorders of all its hosts.

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

/// Of this host: what the recorders show now.
RankNews news_here(const GroupSpec& spec);

/// Of all hosts. `token`: of this question, "4.1234", the asking rank and its call's number. Hosts
/// are asked through the store (diagnostics_thread.h), and left out where they do not tell within
/// `patience`. Errors: the store's.
RankNews news_of_all(const GroupSpec& spec, const std::string& token,
                     std::chrono::milliseconds patience);

/// Writes this host's news down for the rank that asks as `token`. Errors: the store's.
void tell_news(const GroupSpec& spec, const std::string& token);

/// What was told and asked as `token` is gone from the store. Errors: its.
void forget_news(const GroupSpec& spec, const std::string& token);

}  // namespace lockstep
