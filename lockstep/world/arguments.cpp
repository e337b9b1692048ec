#include "lockstep/world/arguments.h"

#include <fmt/format.h>

#include "lockstep/error.h"
#include "lockstep/world/detect/reader.h"

namespace lockstep {
namespace {

void check_argument(const char* name, int value, int lo, int hi) {
  if (value >= lo && value <= hi) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("World::join: {} is {}, not in [{}, {}]", name, value, lo, hi));
}

int place(const char* name, const std::optional<int>& given, int lo, int alone, int size) {
  if (given) check_argument(name, *given, lo, kMaxRanks);
  return given.value_or(size == 1 ? alone : kNotTold);
}

}  // namespace

Identity identity_of(const RankArguments& arguments, const Reader& read) {
  const int size = arguments.world_size;
  check_argument("world_size", size, 1, kMaxRanks);
  check_argument("rank", arguments.rank, 0, kMaxRanks);
  check_argument("master_port", arguments.master_port, 0, 65535);
  Identity id;
  id.launcher = "arguments";
  id.size = size;
  id.rank = arguments.rank;
  id.local_rank = place("local_rank", arguments.local_rank, 0, 0, size);
  id.local_size = place("local_world_size", arguments.local_world_size, 1, 1, size);
  id.node_rank = place("node_rank", arguments.node_rank, 0, 0, size);
  id.num_nodes = place("num_nodes", arguments.num_nodes, 1, 1, size);
  id.job_id = arguments.job_id;
  check_ranges(id,
               {"rank", "world_size", "local_rank", "local_world_size", "node_rank", "num_nodes"});
  id.master = read_master(read, id);
  if (!arguments.master_addr.empty()) id.master = {arguments.master_addr, arguments.master_port};
  return id;
}

}  // namespace lockstep
