#include "lockstep/launch/rendezvous/waiting_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/base/text.h"

namespace lockstep {
namespace {

/// fixed_ranks: those that are not here.
std::string missing_ranks(const MembershipState& state) {
  std::vector<int> missing;
  for (int node = 0; node < state.rules.max_nodes; ++node) {
    if (!state.by_wish.contains(node)) missing.push_back(node);
  }
  return rank_list(missing);
}

std::string lost(const MembershipState& state) {
  if (state.lost_hosts.empty()) return "";
  return fmt::format("; gone: {}", fmt::join(state.lost_hosts, ", "));
}

}  // namespace

std::string nodes_text(int min_nodes, int max_nodes) {
  return min_nodes == max_nodes ? fmt::format("{}", max_nodes)
                                : fmt::format("{}:{}", min_nodes, max_nodes);
}

std::string waiting_text(const MembershipState& state) {
  const MembershipRules& rules = state.rules;
  const std::string here =
      fmt::format("{} of {} nodes are here", state.counts.usable + state.counts.busy,
                  nodes_text(rules.min_nodes, rules.max_nodes));
  const std::string whom =
      rules.fixed_ranks
          ? "node " + missing_ranks(state)
          : fmt::format("{} more", rules.min_nodes - state.counts.usable - state.counts.busy);
  return fmt::format("{}; waiting for {} at {}{}", here, whom, rules.place, lost(state));
}

std::string late_text(const MembershipState& state) {
  const MembershipRules& rules = state.rules;
  const auto limit = std::chrono::duration_cast<std::chrono::seconds>(rules.join_timeout).count();
  if (rules.fixed_ranks) {
    return fmt::format("node {} of {} did not come to {} within {} s", missing_ranks(state),
                       rules.max_nodes, rules.place, limit);
  }
  return fmt::format("{} of at least {} nodes came to {} within {} s{}", state.counts.usable,
                     rules.min_nodes, rules.place, limit, lost(state));
}

}  // namespace lockstep
