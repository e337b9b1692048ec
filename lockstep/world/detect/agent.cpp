// Workers of `lockstep run` and spawn().
#include <limits>

#include "lockstep/world/detect/source.h"

namespace lockstep {

std::optional<Identity> read_agent(const Reader& read) {
  const std::string because = "LOCKSTEP_STORE is; our agent sets both";
  Identity id;
  id.master =
      parse_endpoint(read.need("LOCKSTEP_STORE", "other LOCKSTEP_ variables of our agent are"), -1);
  if (id.master.port < 1) contradict("LOCKSTEP_STORE must be HOST:PORT");
  id.size = read.need_number("LOCKSTEP_WORLD_SIZE", because, 1, kMaxRanks);
  id.rank = read.need_number("LOCKSTEP_RANK", because, 0, kMaxRanks);
  id.local_size = read.need_number("LOCKSTEP_LOCAL_WORLD_SIZE", because, 1, kMaxRanks);
  id.local_rank = read.need_number("LOCKSTEP_LOCAL_RANK", because, 0, kMaxRanks);
  id.num_nodes = read.need_number("LOCKSTEP_NUM_NODES", because, 1, kMaxRanks);
  id.node_rank = read.need_number("LOCKSTEP_NODE_RANK", because, 0, kMaxRanks);
  id.restart_count =
      read.need_number("LOCKSTEP_RESTART_COUNT", because, 0, std::numeric_limits<int>::max());
  id.job_id = read.need("LOCKSTEP_RUN_ID", because);
  check_ranges(id, {"LOCKSTEP_RANK", "LOCKSTEP_WORLD_SIZE", "LOCKSTEP_LOCAL_RANK",
                    "LOCKSTEP_LOCAL_WORLD_SIZE", "LOCKSTEP_NODE_RANK", "LOCKSTEP_NUM_NODES"});
  return id;
}

}  // namespace lockstep
