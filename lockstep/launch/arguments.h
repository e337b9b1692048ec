#pragma once
// A rank's place as its program gives it itself, by whatever flags: the first of all sources.

#include <optional>
#include <string>

#include "lockstep/launch/identity.h"

namespace lockstep {

class Reader;

/// For World::join(): no launcher's variables are read then, but MASTER_ADDR and MASTER_PORT where
/// the place to meet is left out, and those of Lockstep itself (LOCKSTEP_SECRET and so on).
struct RankArguments {
  int rank = 0;
  int world_size = 1;
  /// Where they are left out, the ranks find them out when they meet.
  std::optional<int> local_rank{};
  std::optional<int> local_world_size{};
  std::optional<int> node_rank{};
  std::optional<int> num_nodes{};
  std::string master_addr{};  ///< Rank 0's host.
  int master_port = 0;        ///< There; 0: one that follows from job_id and world_size.
  std::string job_id = "none";
};

/// Checked. Errors: kInvalidArgument naming the arguments at fault.
Identity identity_of(const RankArguments& arguments, const Reader& read);

}  // namespace lockstep
