#include "lockstep/launch/rendezvous/node_order.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace lockstep {
namespace {

constexpr size_t kFree = SIZE_MAX;

/// Whoever has the smaller key comes first.
auto precedence(const NodeWish& node) {
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

}  // namespace

std::vector<size_t> order_nodes(std::span<const NodeWish> nodes, size_t max_nodes) {
  std::vector<size_t> order(nodes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return precedence(nodes[a]) < precedence(nodes[b]); });
  order.resize(std::min(order.size(), max_nodes));

  std::vector<size_t> places(order.size(), kFree);
  std::vector<size_t> rest;
  for (const size_t node : order) {
    const NodeWish& wish = nodes[node];
    const int rank = wish.generation > 0 ? wish.last_rank : wish.node_rank.value_or(-1);
    if (!take(&places, rank, node)) rest.push_back(node);
  }
  auto next = rest.begin();
  for (size_t& place : places) {
    if (place == kFree) place = *next++;
  }
  return places;
}

}  // namespace lockstep
