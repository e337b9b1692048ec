#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/store.h"
#include "lockstep/world/bootstrap/exchange.h"

namespace lockstep {

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
