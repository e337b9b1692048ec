// Launchers that speak PMIx and nothing else (prterun). The variables tell the rank; how many ranks
// there are only the server knows.
#include <fmt/format.h>

#include "lockstep/error.h"
#include "lockstep/world/detect/source.h"

namespace lockstep {

std::optional<Identity> read_pmix(const Reader& read) {
  Identity id;
  id.rank = read.need_number("PMIX_RANK", "PMIX_NAMESPACE is", 0, kMaxRanks);
  const auto name = read.need("PMIX_NAMESPACE", "PMIX_RANK is");
  // What is started by mpirun or srun has these, too, and variables that tell more. Below an agent
  // they are the agent's: the server is not to see its ranks as further ones of that number.
  if (read.first_of({"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "LOCKSTEP_STORE",
                     "TORCHELASTIC_RUN_ID"}))
    return std::nullopt;
  const PmixJob job = read.pmix_job();
  id.size = job.size;
  id.local_size = job.local_size;
  id.local_rank = job.local_rank;
  const bool one_node = id.local_size == id.size;
  id.num_nodes = one_node ? 1 : kNotTold;
  id.node_rank = one_node ? 0 : kNotTold;
  id.job_id = "pmix-" + name;
  id.master = read_master(read, id);
  check_ranges(id, {"PMIX_RANK", "PMIx's job size", "PMIx's local rank", "PMIx's local size",
                    "node", "number of nodes"});
  return id;
}

}  // namespace lockstep
