#pragma once
// Ranks of an MPI job for a test. LOCKSTEP_MPIEXEC is the command that launches them.

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <string>

#include "lockstep/base/env.h"
#include "lockstep/store/tcp/tcp_store.h"

namespace lockstep::inline internal {

/// Exit status of mpi_ranks, case `name`.
inline int under_launcher(int ranks, const std::string& name, const TcpStoreServer& store) {
  ::setenv("LOCKSTEP_TEST_PORT", std::to_string(store.port()).c_str(), 1);
  for (const char* const open_mpi : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
                                     "OMPI_MCA_rmaps_base_oversubscribe"}) {
    ::setenv(open_mpi, "1", 1);  // other launchers do not read it
  }
  const auto command = fmt::format("timeout 120 {} -n {} {}/mpi_ranks {} 2>&1", LOCKSTEP_MPIEXEC,
                                   ranks, env("LOCKSTEP_BIN_DIR").value_or("."), name);
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

inline int under_launcher(int ranks, const std::string& name) {
  return under_launcher(ranks, name, TcpStoreServer({"127.0.0.1", 0, ""}));
}

}  // namespace lockstep::inline internal
