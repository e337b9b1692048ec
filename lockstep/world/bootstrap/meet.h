#pragma once
// The bootstrap record: rank 0's line to the others before they meet, with the address of its store
// and the job's secret. Also how the ranks meet by it.

#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/auth.h"
#include "lockstep/store.h"
#include "lockstep/world/bootstrap/exchange.h"

namespace lockstep::inline internal {

struct BootstrapRecord {
  std::vector<Endpoint> endpoints;  ///< Of one store; each rank may reach only some.
  std::string secret;               ///< Of the job. Empty: each rank already has it.
  Wire wire = Wire::kPlain;         ///< Of the store.
};

/// One line without blanks, at most kMaxExchangeBytes; leaves out endpoints that do not fit.
std::string to_line(const BootstrapRecord& record);
/// Errors: kCorrupt.
BootstrapRecord parse_bootstrap_record(const std::string& line);

/// Meets without a known address. Rank 0 serves a store, on MASTER_PORT if that is set, and
/// publishes `addresses` (its own, best first), port and a new secret. The others connect. Fills
/// id->secret if it is empty, and id->master with the endpoint that answered (rank 0: its first).
/// Errors: kTimeout, and those of the exchange.
std::shared_ptr<Store> meet_by_exchange(const std::shared_ptr<RankExchange>& exchange,
                                        const std::vector<std::string>& addresses, Identity* id,
                                        Deadline deadline);

/// The address of each rank once all have met that way: rank 0 has several, and only another host
/// knows which one works. All ranks call it. `address`: own address towards id.master.
std::string agreed_address(Store& store, const Identity& id, const std::string& address,
                           Deadline deadline);

}  // namespace lockstep::inline internal
