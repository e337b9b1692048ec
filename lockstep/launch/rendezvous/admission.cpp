#include "lockstep/launch/rendezvous/admission.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/base/text.h"

namespace lockstep::inline internal {
namespace {

constexpr char kGiveOwn[] = "give each job an --rdzv_id and an --rdzv_endpoint of its own";

std::string other_secret(const MembershipRules& rules) {
  return fmt::format(
      "the job of this name at {} has another LOCKSTEP_SECRET or LOCKSTEP_TLS: give "
      "each job an --rdzv_id of its own, and all its hosts one secret",
      rules.endpoint);
}

std::string other_hosts(const MembershipRules& rules, const JoinRequest& request) {
  return fmt::format("host {}({}) was started with --nnodes {}, the job at {} with {}",
                     request.node_rank ? fmt::format("{} ", *request.node_rank) : "", request.host,
                     hosts_text(request.min_nodes, request.max_nodes), rules.endpoint,
                     hosts_text(rules.min_nodes, rules.max_nodes));
}

std::string other_program(const MembershipRules& rules, const JoinRequest& request) {
  return fmt::format(
      "host ({}) was started to run {}, the job of this name at {} runs {}: {}, or each program a "
      "--role",
      request.host, request.program, rules.endpoint, rules.own.program, kGiveOwn);
}

std::string other_command(const MembershipRules& rules) {
  return fmt::format(
      "the job of this name at {} has an agent on this host with other arguments or in another "
      "folder: {}, or all agents of one job the same --rdzv_id",
      rules.endpoint, kGiveOwn);
}

/// Whether the marks of two commands differ. Those of another build may be empty.
bool differ(const std::string& one, const std::string& other) {
  return !one.empty() && !other.empty() && one != other;
}

/// Agents of one role. If all are named, the user says that they are of one job.
template <class Leader>
bool other_arguments(const Leader& leader, const JoinRequest& request) {
  return leader.role == request.role && !(leader.named && request.named) &&
         differ(leader.command, request.command);
}

/// For agents on one host.
bool of_two_jobs(const JoinRequest& one, const JoinRequest& other) {
  const bool comparable = one.role == other.role && !(one.named && other.named);
  return comparable && (differ(one.command, other.command) || differ(one.folder, other.folder));
}

/// Calls test(agent) for the present agents on a host until that is true; returns whether it was.
template <class Test>
bool any_on_host(const MembershipState& state, const std::string& host_id, const Test& test) {
  if (host_id.empty()) return false;
  for (auto it = state.by_host.lower_bound({host_id, ""}); it != state.by_host.end(); ++it) {
    if (it->first != host_id) return false;
    if (test(state.agents.at(it->second))) return true;
  }
  return false;
}

/// An agent that took part before is never refused, whichever command the new leader has. The
/// leader's own join request may come after another one.
bool is_second_job(const MembershipState& state, const JoinRequest& request) {
  if (request.generation > 0 || request.host_id.empty()) return false;
  const JoinRequest& own = state.rules.own;
  if (own.host_id == request.host_id && of_two_jobs(own, request)) return true;
  return any_on_host(state, request.host_id, [&](const auto& agent) {
    return agent.alive && agent.request.leaving == 0 && of_two_jobs(agent.request, request);
  });
}

/// Why this agent, which has run nothing, is no spare; empty: it is one.
std::string why_no_spare(const MembershipState& state, const JoinRequest& request) {
  const bool twice = any_on_host(state, request.host_id, [&](const auto& agent) {
    return agent.member && agent.request.role == request.role &&
           !(agent.request.named && request.named);
  });
  if (twice) return "as another agent of this host took part in it";
  return other_arguments(state.rules.own, request) ? "which was started with other arguments" : "";
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

bool same_hosts(const MembershipRules& rules, const JoinRequest& request) {
  return request.min_nodes == rules.min_nodes && request.max_nodes == rules.max_nodes;
}

std::optional<RefuseAgent> refusal_of(const MembershipState& state, const AgentHere& event) {
  const MembershipRules& rules = state.rules;
  const JoinRequest& request = event.request;
  const auto usage = [&](const std::string& why) {
    return RefuseAgent{event.id, ErrorCode::kInvalidArgument, why};
  };
  if (request.mark != rules.mark) return usage(other_secret(rules));
  if (!same_hosts(rules, request)) return usage(other_hosts(rules, request));
  if (!rules.fixed_ranks) {
    const bool other = request.role == rules.own.role && request.program != rules.own.program;
    if (other) return usage(other_program(rules, request));
    if (is_second_job(state, request)) return usage(other_command(rules));
    return std::nullopt;
  }
  const auto holder = state.by_wish.find(request.node_rank.value_or(0));
  if (holder == state.by_wish.end()) return std::nullopt;
  return RefuseAgent{event.id, ErrorCode::kMismatch,
                     fmt::format("--node_rank {} is taken by an agent on {}", holder->first,
                                 state.agents.at(holder->second).request.host)};
}

std::vector<RefuseAgent> refusals_at_end(const MembershipState& state) {
  std::vector<RefuseAgent> refusals;
  for (const auto& [id, agent] : state.agents) {
    if (agent.member || agent.generation > 0 || !agent.usable()) continue;
    const std::string why = why_no_spare(state, agent.request);
    if (why.empty()) continue;
    refusals.push_back(
        {id, ErrorCode::kInvalidArgument,
         fmt::format("the job of this name at {} has ended well without this agent, {}: {}",
                     state.rules.endpoint, why, kGiveOwn)});
  }
  return refusals;
}

std::optional<std::string> difference_text(const JobRecord& record, const JoinRequest& own) {
  if (!other_arguments(record, own)) return std::nullopt;
  return fmt::format(
      "this host was started with other arguments than the job's leader; if it is of another job, "
      "{}",
      kGiveOwn);
}

std::string hosts_text(int min_nodes, int max_nodes) {
  return min_nodes == max_nodes ? fmt::format("{}", max_nodes)
                                : fmt::format("{}:{}", min_nodes, max_nodes);
}

std::string waiting_text(const MembershipState& state) {
  const MembershipRules& rules = state.rules;
  const std::string here =
      fmt::format("{} of {} hosts are here", state.counts.usable + state.counts.busy,
                  hosts_text(rules.min_nodes, rules.max_nodes));
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
