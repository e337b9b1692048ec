#include "lockstep/launch/rendezvous/meeting/listening.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <string>

#include "lockstep/base/unique_fd.h"

namespace lockstep {
namespace {

bool accepts(const addrinfo& address, Deadline deadline) {
  const UniqueFd fd(
      ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, address.ai_protocol));
  if (!fd) return false;
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return false;
    pollfd item{fd.get(), POLLOUT, 0};
    while (::poll(&item, 1, deadline.left_poll_ms()) < 0 && errno == EINTR) {
    }
    int failure = ETIMEDOUT;
    socklen_t size = sizeof failure;
    if (item.revents == 0) return false;
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &failure, &size) != 0 || failure != 0)
      return false;
  }
  return !connected_to_itself(fd.get());
}

}  // namespace

bool somebody_listens(const Endpoint& endpoint, Deadline deadline) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const std::string port = std::to_string(endpoint.port);
  if (::getaddrinfo(endpoint.host.c_str(), port.c_str(), &hints, &list) != 0) return false;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, ::freeaddrinfo);
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    if (accepts(*each, deadline)) return true;
  }
  return false;
}

}  // namespace lockstep
