#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/group_impl.h"

namespace lockstep {

std::string GroupSpec::rank_name(int group_rank) const {
  return fmt::format("rank {}", world_ranks[static_cast<size_t>(group_rank)]);
}

std::string GroupSpec::rank_names(const std::vector<int>& group_ranks) const {
  std::vector<int> named;
  for (const int member : group_ranks) {
    named.push_back(world_ranks[static_cast<size_t>(member)]);
  }
  return fmt::format("{} {}", named.size() == 1 ? "rank" : "ranks", rank_list(named));
}

GroupSpec GroupSpec::subset(const std::vector<int>& ranks, const std::string& suffix) const {
  GroupSpec part = *this;
  part.rank = -1;
  part.size = static_cast<int>(ranks.size());
  part.name = name + suffix;
  part.world_ranks.clear();
  part.host_ids.clear();
  part.addresses.clear();
  part.recorders.clear();
  for (const int old : ranks) {
    if (old == rank) part.rank = static_cast<int>(part.world_ranks.size());
    part.world_ranks.push_back(world_ranks[static_cast<size_t>(old)]);
    part.host_ids.push_back(host_ids[static_cast<size_t>(old)]);
    part.addresses.push_back(addresses[static_cast<size_t>(old)]);
    if (!recorders.empty()) part.recorders.push_back(recorders[static_cast<size_t>(old)]);
  }
  if (part.rank < 0) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{} is not a member of the group of {}",
                                                         rank_name(rank), rank_names(ranks)));
  }
  return part;
}

}  // namespace lockstep
