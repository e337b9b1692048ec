// MPI's launchers, other PMIx launchers, and horovodrun.
#include <fmt/format.h>

#include "lockstep/world/detect/launcher_probe.h"

namespace lockstep::inline internal {

// Open MPI's mpirun. Source: docs/tuning-apps/environment-var.rst of Open MPI lists the stable
// variables; there is no master address and no number of nodes among them.

std::optional<Identity> read_open_mpi(const Reader& read) {
  const std::string because = "another variable of Open MPI's mpirun is";
  Identity id;
  id.size = read.need_number("OMPI_COMM_WORLD_SIZE", because, 1, kMaxRanks);
  id.rank = read.need_number("OMPI_COMM_WORLD_RANK", because, 0, kMaxRanks);
  id.local_size = read.need_number("OMPI_COMM_WORLD_LOCAL_SIZE", because, 1, kMaxRanks);
  id.local_rank = read.need_number("OMPI_COMM_WORLD_LOCAL_RANK", because, 0, kMaxRanks);
  const bool one_host = id.local_size == id.size;
  // Nodes may have different numbers of ranks, in any order, so this node's number is unknown.
  id.num_nodes = one_host ? 1 : kUnknownNumber;
  id.node_rank = one_host ? 0 : kUnknownNumber;
  id.job_id =
      "mpirun-" + read.first_of({"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}).value_or("none");
  id.master = read_master(read, id);
  check_ranges(id, {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                    "OMPI_COMM_WORLD_LOCAL_SIZE", "number of nodes", "node"});
  return id;
}

// Hydra's mpiexec (MPICH, Intel MPI) and MVAPICH2's mpirun_rsh. Source: src/pm/hydra/proxy of
// MPICH.

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
  id.local_rank = read.maybe_number(names.local_rank, 0, kMaxRanks).value_or(kUnknownNumber);
  id.local_size = read.maybe_number(names.local_size, 1, kMaxRanks).value_or(kUnknownNumber);
  const bool one_host = id.local_size == id.size;
  id.num_nodes = one_host ? 1 : kUnknownNumber;
  id.node_rank = one_host ? 0 : kUnknownNumber;
  // Hydra's jobs have no name; without one the ranks meet through PMI.
  id.job_id = "mpiexec-" + read.text("PMI_JOBID").value_or("none");
  id.master = read_master(read, id);
  if (id.master.port == 0 && !read.text("PMI_JOBID") && !read.text("MASTER_ADDR"))
    id.master = {};  // a derived port would be the same for other jobs
  check_ranges(id, names);
  return id;
}

// Launchers with nothing but PMIx (prterun). The variables have the rank; only the server knows the
// number of ranks.

std::optional<Identity> read_pmix(const Reader& read) {
  Identity id;
  id.rank = read.need_number("PMIX_RANK", "PMIX_NAMESPACE is", 0, kMaxRanks);
  const auto name = read.need("PMIX_NAMESPACE", "PMIX_RANK is");
  // Processes of mpirun or srun have these too, and variables with more information. Below an agent
  // they are the agent's: its ranks must not appear at the server as additional ones.
  if (read.first_of({"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "LOCKSTEP_STORE",
                     "TORCHELASTIC_RUN_ID"}))
    return std::nullopt;
  const PmixJob job = read.pmix_job();
  id.size = job.size;
  id.local_size = job.local_size;
  id.local_rank = job.local_rank;
  const bool one_host = id.local_size == id.size;
  id.num_nodes = one_host ? 1 : kUnknownNumber;
  id.node_rank = one_host ? 0 : kUnknownNumber;
  id.job_id = "pmix-" + name;
  id.master = read_master(read, id);
  check_ranges(id, {"PMIX_RANK", "PMIx's job size", "PMIx's local rank", "PMIx's local size",
                    "node", "number of nodes"});
  return id;
}

// horovodrun with Gloo. Source: horovod/runner/gloo_run.py of Horovod.

std::optional<Identity> read_horovod(const Reader& read) {
  const std::string because = "another variable of horovodrun is";
  Identity id;
  id.size = read.need_number("HOROVOD_SIZE", because, 1, kMaxRanks);
  id.rank = read.need_number("HOROVOD_RANK", because, 0, kMaxRanks);
  id.local_size = read.need_number("HOROVOD_LOCAL_SIZE", because, 1, kMaxRanks);
  id.local_rank = read.need_number("HOROVOD_LOCAL_RANK", because, 0, kMaxRanks);
  // CROSS counts the hosts that have this local rank; on uneven hosts not all have it.
  const bool one_host = id.local_size == id.size;
  id.num_nodes = one_host ? 1 : kUnknownNumber;
  id.node_rank = one_host ? 0 : kUnknownNumber;
  // Its rendezvous server uses a separate port for each job of a host.
  id.job_id = "horovod-" + read.text("HOROVOD_GLOO_RENDEZVOUS_ADDR").value_or("none") + "-" +
              read.text("HOROVOD_GLOO_RENDEZVOUS_PORT").value_or("none");
  id.master = read_master(read, id);
  check_ranges(id, {"HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE",
                    "node", "number of nodes"});
  return id;
}

}  // namespace lockstep::inline internal
