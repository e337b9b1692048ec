#pragma once
// Finding and loading lockstep_mpi.so.

#include <string>

#include "lockstep/comm/mpi/shim.h"

namespace lockstep::mpi {

/// The loaded library, or null and why not. Looked for once a process: at $LOCKSTEP_MPI_LIBRARY
/// when that is set, else beside the program, else in the package's library folder.
const LockstepMpiApi* load_library(std::string* why_not);

/// Whether an MPI launcher (mpirun, srun --mpi) has started this process; if not, what to do. Reads
/// the environment only.
bool launched_by_mpi(std::string* why_not);

}  // namespace lockstep::mpi
