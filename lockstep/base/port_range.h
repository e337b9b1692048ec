#pragma once
// LOCKSTEP_PORT_RANGE: the ports that a firewall between the hosts of a job lets through; and
// keeping one of them.

#include <sys/socket.h>

#include <optional>
#include <string>
#include <string_view>

#include "lockstep/base/unique_fd.h"

namespace lockstep {

/// Both ends are in it.
struct PortRange {
  int first = 0;
  int last = 0;
};

/// "29600-29699". `what` names it in the error (kInvalidArgument).
PortRange parse_port_range(std::string_view text, const std::string& what);

/// That of LOCKSTEP_PORT_RANGE; nothing where it is not set, and the kernel chooses.
/// Errors: kInvalidArgument.
std::optional<PortRange> port_range();

/// bind(2), with SO_REUSEADDR, so that a server may come back to its port. An `address` with port 0
/// gets one of port_range() that nobody has bound, not even to keep it; but one of loopback, where
/// there is no firewall, gets what the kernel chooses. False with errno: EADDRINUSE when all are
/// taken. Errors: kInvalidArgument.
bool bind_port(int fd, const sockaddr* address, socklen_t size);

/// What to say when port `port` cannot be had.
std::string port_taken_text(int port);

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
