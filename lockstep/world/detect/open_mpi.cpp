// Open MPI's mpirun. Source: docs/tuning-apps/environment-var.rst of Open MPI lists the variables
// that stay; there is no master address and no number of nodes among them.
#include "lockstep/world/detect/source.h"

namespace lockstep {

std::optional<Identity> read_open_mpi(const Reader& read) {
  const std::string because = "another variable of Open MPI's mpirun is";
  Identity id;
  id.size = read.need_number("OMPI_COMM_WORLD_SIZE", because, 1, kMaxRanks);
  id.rank = read.need_number("OMPI_COMM_WORLD_RANK", because, 0, kMaxRanks);
  id.local_size = read.need_number("OMPI_COMM_WORLD_LOCAL_SIZE", because, 1, kMaxRanks);
  id.local_rank = read.need_number("OMPI_COMM_WORLD_LOCAL_RANK", because, 0, kMaxRanks);
  const bool one_node = id.local_size == id.size;
  // Nodes may have different numbers of ranks, in any order: nothing tells which one this is.
  id.num_nodes = one_node ? 1 : kNotTold;
  id.node_rank = one_node ? 0 : kNotTold;
  id.job_id =
      "mpirun-" + read.first_of({"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}).value_or("none");
  id.master = read_master(read, id);
  check_ranges(id, {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                    "OMPI_COMM_WORLD_LOCAL_SIZE", "number of nodes", "node"});
  return id;
}

}  // namespace lockstep
