#pragma once
// A port number for a test that needs it before a server listens there.

#include <netinet/in.h>
#include <sys/socket.h>

#include "lockstep/base/socket.h"
#include "lockstep/error.h"

namespace lockstep::testing {

/// Reserves a port without a listener: as long as this lives, the kernel assigns it neither to
/// other sockets nor to connections. So other tests cannot get it. A server that sets SO_REUSEADDR,
/// as tcp_listen() and torch's store do, can listen there meanwhile.
class HeldPort {
 public:
  HeldPort() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in any{};
    any.sin_family = AF_INET;
    if (::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0)
      throw io_error("hold a port");
  }
  int number() const { return local_port(fd_.get()); }

 private:
  UniqueFd fd_;
};

}  // namespace lockstep::testing
