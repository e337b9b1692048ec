#include "lockstep/store/torch/client_origin.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

#include "lockstep/base/namespaces.h"
#include "lockstep/base/socket.h"
#include "lockstep/base/unique_fd.h"

namespace lockstep::inline internal {
namespace {

const sockaddr_in& as_ipv4(const sockaddr_in6& address) {
  return reinterpret_cast<const sockaddr_in&>(address);
}

/// Of `end`: the parts of an inet_diag_sockid.
struct DiagEnd {
  explicit DiagEnd(const sockaddr_in6& end) {
    if (end.sin6_family == AF_INET6) {
      port = end.sin6_port;
      std::memcpy(address.data(), &end.sin6_addr, sizeof end.sin6_addr);
    } else {
      port = as_ipv4(end).sin_port;
      address[0] = as_ipv4(end).sin_addr.s_addr;
    }
  }
  __be16 port = 0;
  std::array<__be32, 4> address{};
};

/// The kernel's data of this host's TCP socket `from` that is connected to `to`. Nothing if there
/// is none, or if this kernel does not answer such questions.
std::optional<inet_diag_msg> ask_kernel(const sockaddr_in6& from, const sockaddr_in6& to) {
  struct {
    nlmsghdr head;
    inet_diag_req_v2 socket;
  } question{};
  question.head.nlmsg_len = sizeof question;
  question.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.head.nlmsg_flags = NLM_F_REQUEST;
  question.socket.sdiag_family = static_cast<uint8_t>(from.sin6_family);
  question.socket.sdiag_protocol = IPPROTO_TCP;
  auto& id = question.socket.id;
  const DiagEnd source(from);
  const DiagEnd destination(to);
  id.idiag_sport = source.port;
  id.idiag_dport = destination.port;
  std::copy(source.address.begin(), source.address.end(), id.idiag_src);
  std::copy(destination.address.begin(), destination.address.end(), id.idiag_dst);
  id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  const UniqueFd kernel(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!kernel || ::send(kernel.get(), &question, sizeof question, 0) < 0) return std::nullopt;
  alignas(nlmsghdr) char answer[1024];  // the kernel has answered when send() returns
  const ssize_t got = ::recv(kernel.get(), answer, sizeof answer, MSG_DONTWAIT);
  nlmsghdr head{};
  inet_diag_msg socket{};
  if (got < static_cast<ssize_t>(NLMSG_HDRLEN + sizeof socket)) return std::nullopt;
  std::memcpy(&head, answer, sizeof head);
  if (head.nlmsg_type != SOCK_DIAG_BY_FAMILY) return std::nullopt;
  std::memcpy(&socket, answer + NLMSG_HDRLEN, sizeof socket);
  return socket;
}

/// Large enough for IPv4's addresses.
struct Ends {
  sockaddr_in6 own{};
  sockaddr_in6 other{};
};

/// Nothing if the other end has closed.
std::optional<Ends> ends_of(int fd) {
  Ends ends;
  socklen_t size = sizeof ends.own;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&ends.own), &size) != 0) return std::nullopt;
  size = sizeof ends.other;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&ends.other), &size) != 0) return std::nullopt;
  return ends;
}

}  // namespace

bool is_of_this_host(int fd) {
  if (is_loopback(fd)) return true;
  const auto ends = ends_of(fd);
  if (!ends) return false;
  if (ends->own.sin6_family == AF_INET6) {
    return std::memcmp(&ends->own.sin6_addr, &ends->other.sin6_addr, sizeof(in6_addr)) == 0;
  }
  return as_ipv4(ends->own).sin_addr.s_addr == as_ipv4(ends->other).sin_addr.s_addr;
}

ClientOrigin client_origin(int fd) {
  const auto ends = ends_of(fd);
  if (!ends) return ClientOrigin::kGone;
  const auto peer = ask_kernel(ends->other, ends->own);
  // A socket that is being closed has no user any more.
  if (peer && peer->idiag_state == TCP_ESTABLISHED) {
    const bool own = is_own_user(peer->idiag_uid) || peer->idiag_uid == 0;
    return own ? ClientOrigin::kOwn : ClientOrigin::kOther;
  }
  return ask_kernel(ends->own, ends->other) ? ClientOrigin::kGone : ClientOrigin::kOwn;
}

}  // namespace lockstep::inline internal
