#include <array>

#include "lockstep/world/detect/source.h"

namespace lockstep {
namespace {

constexpr std::array kAgentSigns = {"LOCKSTEP_STORE", "LOCKSTEP_RANK", "LOCKSTEP_WORLD_SIZE"};
constexpr std::array kTorchSigns = {"RANK", "WORLD_SIZE", "LOCAL_RANK"};
constexpr std::array kOpenMpiSigns = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"};
constexpr std::array kPmiSigns = {"PMI_RANK", "PMI_SIZE", "MV2_COMM_WORLD_RANK"};
constexpr std::array kSlurmSigns = {"SLURM_STEP_NUM_TASKS", "SLURM_JOB_ID"};
constexpr std::array kLsfSigns = {"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"};
constexpr std::array kPmixSigns = {"PMIX_RANK", "PMIX_NAMESPACE"};
constexpr std::array kMindsporeSigns = {"MS_WORKER_NUM", "MS_ROLE"};
constexpr std::array kAscendSigns = {"RANK_ID", "RANK_SIZE", "RANK_TABLE_FILE"};
constexpr std::array kKubernetesSigns = {"PET_NNODES", "PET_NODE_RANK"};
constexpr std::array kHorovodSigns = {"HOROVOD_RANK", "HOROVOD_SIZE"};

}  // namespace

std::span<const Source> sources() {
  static constexpr std::array kSources = {
      Source{"lockstep", "lockstep run, spawn()", kAgentSigns, read_agent, true},
      Source{"torch", "torchrun, RANK and WORLD_SIZE", kTorchSigns, read_torch},
      Source{"openmpi", "Open MPI's mpirun", kOpenMpiSigns, read_open_mpi, true},
      Source{"mpich", "Hydra's mpiexec: MPICH, Intel MPI, MVAPICH", kPmiSigns, read_pmi, true},
      Source{"slurm", "a step of srun", kSlurmSigns, read_slurm},
      Source{"lsf", "jsrun in a job of LSF", kLsfSigns, read_lsf},
      Source{"pmix", "prterun and others that speak PMIx", kPmixSigns, read_pmix, true},
      Source{"mindspore", "msrun, MindSpore's dynamic cluster", kMindsporeSigns, read_mindspore},
      Source{"ascend", "RANK_ID and a rank table", kAscendSigns, read_ascend},
      Source{"kubernetes", "a pod of Kubeflow's Trainer", kKubernetesSigns, read_kubernetes},
      Source{"horovod", "horovodrun", kHorovodSigns, read_horovod},
  };
  return kSources;
}

}  // namespace lockstep
