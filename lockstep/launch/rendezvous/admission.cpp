#include "lockstep/launch/rendezvous/admission.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/base/text.h"

namespace lockstep::inline internal {
namespace {

std::string other_secret(const MembershipRules& rules) {
  return fmt::format(
      "the job of this name at {} has another LOCKSTEP_SECRET or LOCKSTEP_TLS: give "
      "each job an --rdzv_id of its own, and all its hosts one secret",
      rules.endpoint);
}

std::string other_nodes(const MembershipRules& rules, const JoinRequest& request) {
  return fmt::format("host {}({}) was started with --nnodes {}, the job at {} with {}",
                     request.node_rank ? fmt::format("{} ", *request.node_rank) : "", request.host,
                     nodes_text(request.min_nodes, request.max_nodes), rules.endpoint,
                     nodes_text(rules.min_nodes, rules.max_nodes));
}

std::string other_program(const MembershipRules& rules, const JoinRequest& request) {
  return fmt::format(
      "host ({}) was started to run {}, the job of this name at {} runs {}: give "
      "each job an --rdzv_id and an --rdzv_endpoint of its own, or each program a "
      "--role",
      request.host, request.program, rules.endpoint, rules.program);
}

/// fixed_ranks: the node ranks that have not come.
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

bool same_nodes(const MembershipRules& rules, const JoinRequest& request) {
  return request.min_nodes == rules.min_nodes && request.max_nodes == rules.max_nodes;
}

std::optional<RefuseAgent> refusal_of(const MembershipState& state, const AgentHere& event) {
  const MembershipRules& rules = state.rules;
  const JoinRequest& request = event.request;
  const auto usage = [&](const std::string& why) {
    return RefuseAgent{event.id, ErrorCode::kInvalidArgument, why};
  };
  if (request.mark != rules.mark) return usage(other_secret(rules));
  if (!same_nodes(rules, request)) return usage(other_nodes(rules, request));
  if (!rules.fixed_ranks) {
    const bool other = request.role == rules.role && request.program != rules.program;
    return other ? std::optional(usage(other_program(rules, request))) : std::nullopt;
  }
  const auto holder = state.by_wish.find(request.node_rank.value_or(0));
  if (holder == state.by_wish.end()) return std::nullopt;
  return RefuseAgent{event.id, ErrorCode::kMismatch,
                     fmt::format("--node_rank {} is taken by an agent on {}", holder->first,
                                 state.agents.at(holder->second).request.host)};
}

std::string nodes_text(int min_nodes, int max_nodes) {
  return min_nodes == max_nodes ? fmt::format("{}", max_nodes)
                                : fmt::format("{}:{}", min_nodes, max_nodes);
}

std::string waiting_text(const MembershipState& state) {
  const MembershipRules& rules = state.rules;
  const std::string here =
      fmt::format("{} of {} hosts are here", state.counts.usable + state.counts.busy,
                  nodes_text(rules.min_nodes, rules.max_nodes));
  const std::string whom =
      rules.fixed_ranks
          ? "host " + missing_ranks(state)
          : fmt::format("{} more", rules.min_nodes - state.counts.usable - state.counts.busy);
  return fmt::format("{}; waiting for {} at {}{}", here, whom, rules.endpoint, lost(state));
}

std::string late_text(const MembershipState& state) {
  const MembershipRules& rules = state.rules;
  const auto limit = std::chrono::duration_cast<std::chrono::seconds>(rules.join_timeout).count();
  if (rules.fixed_ranks) {
    return fmt::format("host {} of {} did not come to {} within {} s", missing_ranks(state),
                       rules.max_nodes, rules.endpoint, limit);
  }
  return fmt::format("{} of at least {} hosts came to {} within {} s{}", state.counts.usable,
                     rules.min_nodes, rules.endpoint, limit, lost(state));
}

}  // namespace lockstep::inline internal
