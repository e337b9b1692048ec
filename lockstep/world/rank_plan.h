#pragma once
// Who gets which ranks: nodes in the order of their node rank, ranks of a node in a row.

#include <string>
#include <vector>

namespace lockstep {

/// What a node brings to a job.
struct NodeOffer {
  std::string host;    ///< For messages.
  int num_nodes = 1;   ///< What its command line says; must be equal everywhere.
  int local_size = 1;  ///< Ranks it runs.
  std::string role;    ///< ROLE_NAME of its ranks.
};

/// A node's part of the job.
struct NodeRanks {
  int first_rank = 0;
  int local_size = 1;
  int first_role_rank = 0;  ///< Ranks of nodes of the same role before this one.
  int role_size = 1;        ///< Ranks of all nodes of this role.
};

/// offers[r] is node rank r's. Nodes may bring different numbers of ranks.
/// Errors: kMismatch when a node's num_nodes is not offers.size().
std::vector<NodeRanks> plan_ranks(const std::vector<NodeOffer>& offers);

/// Number of ranks of all nodes.
int world_size(const std::vector<NodeRanks>& plan);

}  // namespace lockstep
