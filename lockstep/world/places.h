#pragma once
// The ranks' hosts if the launcher does not provide them: determined once the ranks have met.

#include <string>
#include <vector>

#include "lockstep/store.h"
#include "lockstep/world/identity.h"

namespace lockstep::inline internal {

/// A rank's own data about its place.
struct PlaceReport {
  std::string host_id;              ///< From this_host_id().
  int local_rank = kUnknownNumber;  ///< From the launcher.
};

struct RankPlace {
  int local_rank = 0;
  int local_size = 1;
  int node_rank = 0;
  int num_nodes = 1;
  bool operator==(const RankPlace&) const = default;
};

/// By rank. Hosts are numbered in the order of their lowest rank. A host's local ranks are the
/// launcher's if they are 0, 1, 2, ...; else its ranks are numbered in their order.
std::vector<RankPlace> assign_places(const std::vector<PlaceReport>& reports);

/// Whether find_place() must be called. The same on all ranks of a job.
bool has_unknown_place(const Identity& id);

/// Replaces kUnknownNumber values in `id`. All ranks call it, or none. Rank 0 logs after a few
/// seconds for which ranks it waits. Cost: rank 0 reads a line of each; two round trips for the
/// others. Errors: kTimeout naming the missing ranks.
void find_place(Store& store, const std::string& host_id, Identity* id, Deadline deadline);

}  // namespace lockstep::inline internal
