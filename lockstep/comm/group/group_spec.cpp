#include <fmt/format.h>

#include <map>

#include "lockstep/base/text.h"
#include "lockstep/comm/group_impl.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

std::string GroupSpec::rank_name(int group_rank) const {
  return fmt::format("rank {}", world_ranks[static_cast<size_t>(group_rank)]);
}

std::string GroupSpec::rank_names(const std::vector<int>& group_ranks) const {
  std::vector<int> named;
  for (const int member : group_ranks) {
    named.push_back(world_ranks[static_cast<size_t>(member)]);
  }
  return rank_words(named);
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
  part.devices.clear();
  // Data that not all members of this group know may be known to all members of the part; else the
  // part exchanges it.
  if (endpoints && endpoints->empty()) {
    part.endpoints = std::make_shared<std::map<int, std::string>>();
  }
  for (const int old : ranks) {
    if (old == rank) part.rank = static_cast<int>(part.world_ranks.size());
    part.world_ranks.push_back(world_ranks[static_cast<size_t>(old)]);
    part.host_ids.push_back(host_ids[static_cast<size_t>(old)]);
    part.addresses.push_back(addresses[static_cast<size_t>(old)]);
    if (!devices.empty()) part.devices.push_back(devices[static_cast<size_t>(old)]);
    if (!recorders.empty()) part.recorders.push_back(recorders[static_cast<size_t>(old)]);
  }
  if (part.rank < 0) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{} is not a member of the group of {}",
                                                         rank_name(rank), rank_names(ranks)));
  }
  return part;
}

bool GroupSpec::has_a_device_each(std::string_view maker, std::string_view prefix,
                                  std::string* why_not) const {
  std::map<std::string, int> owners;
  for (int member = 0; member < size; ++member) {
    const auto at = static_cast<size_t>(member);
    const std::string own = at < devices.size() ? devices[at] : "";
    if (!own.starts_with(prefix) || own.empty()) {
      const auto who = at < world_ranks.size() ? rank_name(member) : "this process";
      *why_not = fmt::format("{} has no {} device", who, maker);
      return false;
    }
    const auto [first, is_new] = owners.emplace(own.substr(own.find(' ') + 1), member);
    if (is_new) continue;
    *why_not = fmt::format("{} and {} have one {} device ({})", rank_name(first->second),
                           rank_name(member), maker, own);
    return false;
  }
  return true;
}

std::string GroupSpec::device_name() const {
  const auto& own = devices.at(static_cast<size_t>(rank));
  return own.substr(0, own.find(' '));
}

}  // namespace lockstep::inline internal
