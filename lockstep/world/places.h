#pragma once
// Who is on which host, where the launcher does not tell: found out once the ranks have met.

#include <string>
#include <vector>

#include "lockstep/store.h"
#include "lockstep/world/identity.h"

namespace lockstep {

/// What a rank knows of its place.
struct PlaceReport {
  std::string host_id;        ///< As this_host_id() gives it.
  int local_rank = kNotTold;  ///< As the launcher gave it.
};

struct RankPlace {
  int local_rank = 0;
  int local_size = 1;
  int node_rank = 0;
  int num_nodes = 1;
  bool operator==(const RankPlace&) const = default;
};

/// By rank. Hosts are numbered in the order of their lowest rank. Local ranks are those of the
/// launcher where a host's are 0, 1, 2, ...; else a host's ranks are numbered in their order.
std::vector<RankPlace> assign_places(const std::vector<PlaceReport>& reports);

/// Must find_place() be called? The same on all ranks of a job.
bool has_unknown_place(const Identity& id);

/// Replaces what is kNotTold in `id`. All ranks call it, or none. Cost: rank 0 reads a line of
/// each; two round trips for the others. Errors: kTimeout naming a rank that did not come.
void find_place(Store& store, const std::string& host_id, Identity* id, Deadline deadline);

}  // namespace lockstep
