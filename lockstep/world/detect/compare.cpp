#include "lockstep/world/detect/compare.h"

#include <algorithm>

#include "lockstep/world/places.h"

namespace lockstep {
namespace {

bool used(const Finding& finding, const char* name) {
  return std::find(finding.variables.begin(), finding.variables.end(), name) !=
         finding.variables.end();
}

/// An agent that knows of nodes started it: each of its nodes can be a rank of the launcher around.
bool by_agent(const Finding& finding) {
  return used(finding, "LOCKSTEP_STORE") || used(finding, "TORCHELASTIC_RUN_ID");
}

bool is_batch_system(const Finding& finding) {
  return !finding.source->starts_ranks && !by_agent(finding) && finding.source->read != read_torch;
}

bool same_number(int a, int b) {
  return a == kNotTold || b == kNotTold || a == b;
}

/// The nodes of `inner` are the ranks of `outer`.
bool ranks_are_nodes(const Identity& outer, const Identity& inner) {
  return outer.size == inner.num_nodes && outer.rank == inner.node_rank;
}

}  // namespace

Finding* innermost(std::vector<Finding>& findings, Finding* first) {
  if (!is_batch_system(*first) || first->identity->size != 1) return first;
  for (Finding& other : findings) {
    if (&other > first && other.identity && other.identity->size > 1) return &other;
  }
  return first;
}

bool is_around_agent(const Finding& chosen, const Finding& other) {
  return by_agent(chosen) && is_batch_system(other);
}

std::string why_no_conflict(const Finding& chosen, const Finding& other) {
  const Identity& a = *chosen.identity;
  const Identity& b = *other.identity;
  const bool same = a.rank == b.rank && a.size == b.size;
  if (same && same_number(a.local_rank, b.local_rank) && same_number(a.local_size, b.local_size)) {
    return "it agrees";
  }
  if (is_batch_system(other)) {
    if (chosen.source->starts_ranks || by_agent(chosen)) return "its step started the launcher";
    if (b.size == 1 || ranks_are_nodes(b, a)) return "its tasks started the ranks";
  }
  // mpirun starts an agent a node: then its ranks are the agents' nodes, in whatever order.
  const bool agents = other.source->starts_ranks && by_agent(chosen) && !by_agent(other);
  if (agents && a.num_nodes == b.size) return "it started the agents";
  return "";
}

Identity refined(const Finding& chosen, const std::vector<Finding>& findings) {
  Identity id = *chosen.identity;
  if (!has_unknown_place(id)) return id;
  for (const Finding& other : findings) {
    if (&other == &chosen || !other.identity) continue;
    const Identity& better = *other.identity;
    if (better.rank != id.rank || better.size != id.size || has_unknown_place(better)) continue;
    id.local_rank = better.local_rank;
    id.local_size = better.local_size;
    id.node_rank = better.node_rank;
    id.num_nodes = better.num_nodes;
    break;
  }
  return id;
}

}  // namespace lockstep
