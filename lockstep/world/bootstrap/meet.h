#pragma once
// What rank 0 tells the others before they meet, where its store is and the job's secret; and
// meeting that way.

#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/auth.h"
#include "lockstep/base/socket.h"
#include "lockstep/store.h"
#include "lockstep/world/bootstrap/exchange.h"

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

/// Meets where no place is known before: rank 0 serves a store, on MASTER_PORT if that is set, and
/// tells `addresses` (its own, best first), port and a fresh secret; the others come. Fills
/// id->secret where it is empty, and id->master with the endpoint that answered (rank 0: its
/// first). Errors: kTimeout, and those of the exchange.
std::shared_ptr<Store> meet_by_exchange(const std::shared_ptr<RankExchange>& exchange,
                                        const std::vector<std::string>& addresses, Identity* id,
                                        Deadline deadline);

/// The address of each rank once all have met that way: rank 0 has several, and another host knows
/// which one can be reached. All ranks call it. `address`: own address towards id.master.
std::string agreed_address(Store& store, const Identity& id, const std::string& address,
                           Deadline deadline);

}  // namespace lockstep
