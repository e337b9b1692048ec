#pragma once
// LOCKSTEP_PORT_RANGE, the ports that a firewall between the hosts of a job allows; and reservation
// of one of them.

#include <sys/socket.h>

#include <optional>
#include <string>
#include <string_view>

#include "lockstep/base/unique_fd.h"

namespace lockstep::inline internal {

/// Both ends are included.
struct PortRange {
  int first = 0;
  int last = 0;
};

/// "29600-29699". `what` names it in the error (kInvalidArgument).
PortRange parse_port_range(std::string_view text, const std::string& what);

/// The range of LOCKSTEP_PORT_RANGE; nothing if it is not set, and the kernel chooses. Errors:
/// kInvalidArgument.
std::optional<PortRange> port_range();

/// bind(2), with SO_REUSEADDR, so that a restarted server gets its port again. An `address` with
/// port 0 gets a port of port_range() that no socket has bound, not even to reserve it. A loopback
/// address, where there is no firewall, gets a port chosen by the kernel. False with errno:
/// EADDRINUSE if all are taken. Errors: kInvalidArgument.
bool bind_port(int fd, const sockaddr* address, socklen_t size);

/// The message for a port that is taken.
std::string port_taken_text(int port);

/// Reserves a port for a worker: the kernel does not assign it to others as a free port. Yet a
/// server that sets SO_REUSEADDR, as torch's store does, can listen on it.
class ReservedPort {
 public:
  /// port 0: a free one, of LOCKSTEP_PORT_RANGE if that is set. Errors: kInvalidArgument if a
  /// server listens on `port`, kUnavailable if all of the range are taken.
  explicit ReservedPort(int port);
  int port() const { return port_; }

 private:
  UniqueFd fd_;
  int port_;
};

}  // namespace lockstep::inline internal
