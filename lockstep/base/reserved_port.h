#pragma once

#include <string>

#include "lockstep/base/unique_fd.h"

namespace lockstep {

/// Keeps a port for a worker: the kernel gives it to nobody who asks for any free port, yet a
/// server that sets SO_REUSEADDR, as torch's store does, can listen there.
class ReservedPort {
 public:
  /// port 0: a free one, of LOCKSTEP_PORT_RANGE where that is set. Errors: kInvalidArgument when
  /// somebody listens on `port`, kUnavailable when all of the range are taken.
  explicit ReservedPort(int port);
  int port() const { return port_; }

 private:
  UniqueFd fd_;
  int port_;
};

}  // namespace lockstep
