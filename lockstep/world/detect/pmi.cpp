// Hydra's mpiexec (MPICH, Intel MPI) and MVAPICH2's mpirun_rsh. Source: src/pm/hydra/proxy of
// MPICH.
#include "lockstep/world/detect/source.h"

namespace lockstep {

std::optional<Identity> read_pmi(const Reader& read) {
  const bool local = read.first_of({"MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK"}).has_value();
  if (!local && read.text("SLURM_PROCID") && read.text("SLURM_STEP_NUM_TASKS")) {
    return std::nullopt;  // srun --mpi=pmi2: Slurm's own variables say more
  }
  const bool hydra = read.first_of({"PMI_RANK", "PMI_SIZE"}).has_value();
  const RankNames names = hydra ? RankNames{"PMI_RANK",        "PMI_SIZE", "MPI_LOCALRANKID",
                                            "MPI_LOCALNRANKS", "node",     "number of nodes"}
                                : RankNames{"MV2_COMM_WORLD_RANK",
                                            "MV2_COMM_WORLD_SIZE",
                                            "MV2_COMM_WORLD_LOCAL_RANK",
                                            "MV2_COMM_WORLD_LOCAL_SIZE",
                                            "node",
                                            "number of nodes"};
  const std::string because = "another variable of mpiexec is";
  Identity id;
  id.size = read.need_number(names.size, because, 1, kMaxRanks);
  id.rank = read.need_number(names.rank, because, 0, kMaxRanks);
  id.local_rank = read.maybe_number(names.local_rank, 0, kMaxRanks).value_or(kNotTold);
  id.local_size = read.maybe_number(names.local_size, 1, kMaxRanks).value_or(kNotTold);
  const bool one_node = id.local_size == id.size;
  id.num_nodes = one_node ? 1 : kNotTold;
  id.node_rank = one_node ? 0 : kNotTold;
  // Hydra gives its jobs no name; where none is, the ranks meet through PMI.
  id.job_id = "mpiexec-" + read.text("PMI_JOBID").value_or("none");
  id.master = read_master(read, id);
  if (id.master.port == 0 && !read.text("PMI_JOBID") && !read.text("MASTER_ADDR"))
    id.master = {};  // no port can be derived that another job does not derive, too
  check_ranges(id, names);
  return id;
}

}  // namespace lockstep
