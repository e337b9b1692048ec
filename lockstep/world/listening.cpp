#include "lockstep/world/listening.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/base/unique_fd.h"

namespace lockstep {
namespace {

/// Of what this host has no way to: it says nothing of who is there.
bool no_way_there(int failure) {
  return failure == EAFNOSUPPORT || failure == ENETUNREACH || failure == EADDRNOTAVAIL;
}

/// Nothing for an address that this host has no way to.
std::optional<Listening> ask(const addrinfo& address, Deadline deadline) {
  const auto refusal = [](int failure) -> std::optional<Listening> {
    if (no_way_there(failure)) return std::nullopt;
    return failure == ECONNREFUSED ? Listening::kNo : Listening::kSilent;
  };
  const UniqueFd fd(
      ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, address.ai_protocol));
  if (!fd) return refusal(errno);
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return refusal(errno);
    pollfd item{fd.get(), POLLOUT, 0};
    while (::poll(&item, 1, deadline.left_poll_ms()) < 0 && errno == EINTR) {
    }
    int failure = ETIMEDOUT;
    socklen_t size = sizeof failure;
    if (item.revents == 0) return Listening::kSilent;
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &failure, &size) != 0 || failure != 0)
      return refusal(failure);
  }
  return connected_to_itself(fd.get()) ? Listening::kNo : Listening::kYes;
}

}  // namespace

Listening probe(const Endpoint& endpoint, Deadline deadline) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const std::string port = std::to_string(endpoint.port);
  if (::getaddrinfo(endpoint.host.c_str(), port.c_str(), &hints, &list) != 0)
    return Listening::kSilent;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, ::freeaddrinfo);
  return probe(list, deadline);
}

Listening probe(const addrinfo* list, Deadline deadline) {
  std::optional<Listening> all;
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    const auto one = ask(*each, deadline);
    if (one == Listening::kYes) return *one;
    if (one && all != Listening::kSilent) all = one;
  }
  return all.value_or(Listening::kSilent);
}

bool somebody_listens(const Endpoint& endpoint, Deadline deadline) {
  return probe(endpoint, deadline) == Listening::kYes;
}

}  // namespace lockstep
