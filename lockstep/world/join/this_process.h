#pragma once
// Which rank this very process is: the decision, made from its environment and its host.

#include "lockstep/deadline.h"
#include "lockstep/world/detect/decision.h"
#include "lockstep/world/environment.h"
#include "lockstep/world/identity.h"

namespace lockstep {

/// `variables`, and files as they are (at most 64 MiB each).
Inputs inputs_from(const Environment& variables);

/// The first source of sources() (world/detect/source.h) that tells rank and size. Another that
/// tells them too must agree, unless it started the agent of the first (mpirun in a batch job,
/// torchrun below srun); LOCKSTEP_LAUNCHER=NAME picks one without comparing, `none` none. An empty
/// variable counts as unset. Between hosts a secret is needed: LOCKSTEP_SECRET, or a channel that
/// carries one, or LOCKSTEP_INSECURE=1. LOCKSTEP_TLS=1: what the store is told and tells between
/// hosts is encrypted.
/// Reads the files that variables name. Errors: kInvalidArgument naming the variables at fault.
Identity decide_identity(const Environment& environment);

/// Is this process one rank of a job that a launcher has started? Errors: those of
/// decide_identity().
bool is_launched();

/// `environment` with PMI_RANK and PMI_SIZE, where only PMI_PORT and no other launcher tells them;
/// else as it is. Errors: those of PmiPort.
Environment with_pmi_port(Environment environment, Deadline deadline);

}  // namespace lockstep
