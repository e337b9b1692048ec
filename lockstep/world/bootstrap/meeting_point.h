#pragma once
// What rank 0 tells the others before they meet: where its store is, and the job's secret.

#include <string>
#include <vector>

#include "lockstep/base/auth.h"
#include "lockstep/base/socket.h"

namespace lockstep {

struct MeetingPoint {
  std::vector<Endpoint> endpoints;  ///< Of one store; which are reachable depends on who asks.
  std::string secret;               ///< Of the job. Empty: each rank has been given it.
  Wire wire = Wire::kPlain;         ///< Of the store.
};

/// One line without blanks, at most kMaxExchangeBytes; endpoints that do not fit are left out.
std::string to_line(const MeetingPoint& point);
/// Errors: kCorrupt.
MeetingPoint parse_meeting_point(const std::string& line);

}  // namespace lockstep
