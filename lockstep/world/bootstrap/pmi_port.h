#pragma once
// `mpiexec.hydra -pmi-port`: a process learns neither rank nor size from its environment, and
// inherits no descriptor; at PMI_PORT it is told who PMI_ID is. Source: src/pmi of MPICH.

#include "lockstep/base/unique_fd.h"
#include "lockstep/deadline.h"
#include "lockstep/world/bootstrap/pmi_wire.h"
#include "lockstep/world/environment.h"

namespace lockstep {

/// A conversation at PMI_PORT. There may be several, one after another; each has to be finished.
class PmiPort {
 public:
  /// `environment`: with PMI_PORT and PMI_ID. Errors: kInvalidArgument (they are no such),
  /// kTimeout, kUnavailable, kIo, kCorrupt.
  PmiPort(const Environment& environment, Deadline deadline);

  PmiWire& wire() { return wire_; }
  const PmiWire::Introduction& own() const { return own_; }

 private:
  UniqueFd fd_;
  PmiWire wire_;
  PmiWire::Introduction own_;
};

/// `environment` with PMI_RANK and PMI_SIZE, where only PMI_PORT and no other launcher tells them;
/// else as it is. Errors: as above.
Environment with_pmi_port(Environment environment, Deadline deadline);

}  // namespace lockstep
