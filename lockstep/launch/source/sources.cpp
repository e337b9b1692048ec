#include <array>

#include "lockstep/launch/source/source.h"

namespace lockstep {
namespace {

constexpr std::array kAgentSigns = {"LOCKSTEP_STORE", "LOCKSTEP_RANK", "LOCKSTEP_WORLD_SIZE"};
constexpr std::array kTorchSigns = {"RANK", "WORLD_SIZE", "LOCAL_RANK"};
constexpr std::array kOpenMpiSigns = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"};
constexpr std::array kPmiSigns = {"PMI_RANK", "PMI_SIZE", "MV2_COMM_WORLD_RANK"};
constexpr std::array kSlurmSigns = {"SLURM_STEP_NUM_TASKS", "SLURM_JOB_ID"};

}  // namespace

std::span<const Source> sources() {
  static constexpr std::array kSources = {
      Source{"lockstep", "lockstep run, spawn()", kAgentSigns, read_agent, true},
      Source{"torch", "torchrun, RANK and WORLD_SIZE", kTorchSigns, read_torch},
      Source{"openmpi", "Open MPI's mpirun", kOpenMpiSigns, read_open_mpi, true},
      Source{"mpich", "Hydra's mpiexec: MPICH, Intel MPI, MVAPICH", kPmiSigns, read_pmi, true},
      Source{"slurm", "a step of srun", kSlurmSigns, read_slurm},
  };
  return kSources;
}

}  // namespace lockstep
