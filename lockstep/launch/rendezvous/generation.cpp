#include "lockstep/launch/rendezvous/generation.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "lockstep/base/generation_token.h"
#include "lockstep/launch/rendezvous/messages.h"
#include "lockstep/world/worker_env.h"

namespace lockstep::inline internal {
namespace {

constexpr size_t kFree = SIZE_MAX;

/// The host with the smaller key comes first.
auto precedence(const HostWish& node) {
  const bool had = node.generation > 0;
  const int kind = had ? 0 : (node.node_rank ? 1 : 2);
  const int rank = had ? node.last_rank : node.node_rank.value_or(0);
  return std::tuple(kind, -node.generation, rank, node.arrival);
}

/// Takes place `rank` if it exists and is free.
bool take(std::vector<size_t>* places, int rank, size_t node) {
  if (rank < 0 || static_cast<size_t>(rank) >= places->size()) return false;
  size_t& place = (*places)[static_cast<size_t>(rank)];
  if (place != kFree) return false;
  place = node;
  return true;
}

using Entry = std::pair<const std::string, MembershipState::Agent>;

/// The hosts that take part, by node rank.
std::vector<Entry*> choose(MembershipState* state) {
  std::vector<Entry*> usable;
  std::vector<HostWish> wishes;
  for (Entry& entry : state->agents) {
    const auto& agent = entry.second;
    if (!agent.usable()) continue;
    usable.push_back(&entry);
    wishes.push_back({agent.generation, agent.node_rank, agent.request.node_rank, agent.arrival});
  }
  std::vector<Entry*> chosen;
  for (const size_t index : order_hosts(wishes, static_cast<size_t>(state->rules.max_nodes))) {
    chosen.push_back(usable[index]);
  }
  return chosen;
}

std::vector<RanksOfHost> ranks_of(const std::vector<Entry*>& nodes) {
  std::vector<HostRequest> requests;
  for (const Entry* node : nodes) {
    const JoinRequest& request = node->second.request;
    requests.push_back(
        {request.host, static_cast<int>(nodes.size()), request.local_size, request.role});
  }
  return assign_ranks(requests);
}

/// The part that is equal in all assignments.
HostAssignment common_assignment(const MembershipState& state, const std::vector<Entry*>& nodes,
                                 const std::vector<RanksOfHost>& ranks) {
  HostAssignment assignment;
  assignment.generation = state.generation;
  assignment.token = generation_token(state.launch, state.rules.term);
  assignment.restart_count = state.restarts.restarts;
  assignment.early_failures = std::min(state.restarts.early_failures, kMaxRestarts);
  assignment.failures_in_a_row = std::min(state.restarts.in_a_row, kMaxRestarts);
  assignment.stepped = state.restarts.stepped;
  assignment.max_restarts = state.rules.max_restarts;
  assignment.run_id = state.rules.run_id;
  assignment.num_nodes = static_cast<int>(nodes.size());
  assignment.world_size = world_size(ranks);
  const JoinRequest& first = nodes[0]->second.request;
  assignment.store = {first.address, first.store_port};
  assignment.torch = {first.address, first.torch_port};
  for (size_t i = 0; i < std::min(nodes.size(), size_t{kMaxSuccessors}); ++i) {
    const JoinRequest& request = nodes[i]->second.request;
    assignment.successors.push_back({request.address, request.takeover_port});
  }
  return assignment;
}

}  // namespace

std::vector<size_t> order_hosts(std::span<const HostWish> nodes, size_t max_nodes) {
  std::vector<size_t> order(nodes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return precedence(nodes[a]) < precedence(nodes[b]); });
  order.resize(std::min(order.size(), max_nodes));

  std::vector<size_t> places(order.size(), kFree);
  std::vector<size_t> rest;
  for (const size_t node : order) {
    const HostWish& wish = nodes[node];
    const int rank = wish.generation > 0 ? wish.last_rank : wish.node_rank.value_or(-1);
    if (!take(&places, rank, node)) rest.push_back(node);
  }
  auto next = rest.begin();
  for (size_t& place : places) {
    if (place == kFree) place = *next++;
  }
  return places;
}

PublishAssignments make_generation(MembershipState* state) {
  const std::vector<Entry*> nodes = choose(state);
  const std::vector<RanksOfHost> ranks = ranks_of(nodes);
  state->generation = ++state->newest;
  state->inherited = false;
  if (state->launch.empty()) state->launch = state->rules.term;
  HostAssignment assignment = common_assignment(*state, nodes, ranks);
  PublishAssignments action;
  for (size_t i = 0; i < nodes.size(); ++i) {
    assignment.node_rank = static_cast<int>(i);
    assignment.ranks = ranks[i];
    action.assignments.emplace_back(nodes[i]->first, assignment);
    auto& agent = nodes[i]->second;
    agent.member = true;
    agent.generation = state->generation;
    agent.node_rank = assignment.node_rank;
    agent.work = HostWork::kBusy;
  }
  return action;
}

}  // namespace lockstep::inline internal
