#pragma once
// The rank of this process, decided from its environment and its host.

#include "lockstep/deadline.h"
#include "lockstep/world/detect/reader.h"
#include "lockstep/world/environment.h"
#include "lockstep/world/identity.h"

namespace lockstep::inline internal {

/// `variables`, and files as they are (at most 64 MiB each).
Inputs inputs_from(const Environment& variables);

/// The identity by the first of launcher_probes() (world/detect/launcher_probe.h) with rank and
/// size. Another launcher with both must agree, unless it started the agent of the first (mpirun in
/// a batch job, torchrun below srun). LOCKSTEP_LAUNCHER=NAME chooses one without a comparison,
/// `none` none. An empty variable counts as unset.
///
/// Between hosts a secret is needed: LOCKSTEP_SECRET, or a channel that carries one, or
/// LOCKSTEP_INSECURE=1. LOCKSTEP_TLS=1 encrypts the store's traffic between hosts. Reads the files
/// that variables name. Errors: kInvalidArgument naming the wrong variables.
Identity decide_identity(const Environment& environment);

/// Whether this process is one rank of a job that a launcher has started. Errors: those of
/// decide_identity().
bool is_launched();

/// `environment` with PMI_RANK and PMI_SIZE, if only PMI_PORT and no other launcher provides them;
/// else unchanged. Errors: those of PmiPort.
Environment with_pmi_port(Environment environment, Deadline deadline);

}  // namespace lockstep::inline internal
