#pragma once
// Finds and loads lockstep_mpi.so.

#include <string>

#include "lockstep/comm/mpi/shim.h"

namespace lockstep::mpi {

/// The loaded library; null if that fails, and `why_not` receives the reason. Searched once per
/// process: at $LOCKSTEP_MPI_LIBRARY if that is set, else beside the program, else in the package's
/// library folder.
const LockstepMpiApi* load_library(std::string* why_not);

/// True if an MPI launcher (mpirun, srun --mpi) started this process; if not, `why_not` receives
/// the remedy. Reads the environment only.
bool launched_by_mpi(std::string* why_not);

}  // namespace lockstep::mpi
