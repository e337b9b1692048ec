#pragma once
// Trying another host's ports, and how fast the way there is.

#include <chrono>
#include <string>
#include <vector>

#include "lockstep/deadline.h"

namespace lockstep::doctor {

struct LinkTarget {
  int index = 0;     ///< Of the host that should answer.
  std::string name;  ///< As this host resolves it.
  int asked = 0;     ///< The port that stands in the finding.
  int port = 0;
};

/// Why a port cannot be reached, each try within `limit`, all at once; "" when the right host's
/// doctor answered. `names` are all hosts', for a name that leads to another.
std::vector<std::string> try_links(const std::vector<LinkTarget>& targets,
                                   const std::string& cookie, const std::vector<std::string>& names,
                                   Deadline::Clock::duration limit);

struct LinkSpeed {
  double latency_us = 0;
  double gbit_s = 0;
};

/// Median of up to 200 round trips of 8 bytes, then one stream for `time`: what the other end has
/// acknowledged. Errors: kUnavailable, kTimeout, kPeerLost.
LinkSpeed measure_link(const LinkTarget& target, const std::string& cookie,
                       Deadline::Clock::duration time);

}  // namespace lockstep::doctor
