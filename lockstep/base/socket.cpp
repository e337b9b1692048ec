#include "lockstep/base/socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>

#include "lockstep/base/literals.h"
#include "lockstep/base/port_range.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

/// 127.0.0.0/8. Not ::1, which a host with 127.0.0.1 may lack.
bool is_ipv4_loopback(const sockaddr* address) {
  if (address->sa_family != AF_INET) return false;
  return (ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr) >> 24) == 127;
}

/// One attempt at one address; empty with errno if refused or timed out. Errors: kUnavailable if it
/// is this host's own address and has no device; kIo.
UniqueFd try_connect(const addrinfo& address, Deadline deadline,
                     const std::function<void()>& look = {}) {
  ConnectAttempt attempt = attempt_connect(address, deadline, look);
  errno = attempt.failure;
  // A kernel without IPv6: the next address may work.
  if (attempt.no_socket && errno != EAFNOSUPPORT) throw io_error("socket");
  if (errno == ENETUNREACH && is_ipv4_loopback(address.ai_addr)) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("{}: Network is unreachable; is the device lo up?",
                            address_text(address.ai_addr, address.ai_addrlen, true)));
  }
  if (!attempt.fd) return {};
  const int fd = attempt.fd.get();
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  return std::move(attempt.fd);
}

/// Nothing for an address without a route from this host: that reveals nothing about listeners
/// there.
std::optional<Listening> ask(const addrinfo& address, Deadline deadline) {
  const ConnectAttempt attempt = attempt_connect(address, deadline);
  switch (attempt.failure) {
    case 0:
      return connected_to_itself(attempt.fd.get()) ? Listening::kNo : Listening::kYes;
    case ECONNREFUSED:
      return Listening::kNo;
    case EAFNOSUPPORT:
    case ENETUNREACH:
    case EADDRNOTAVAIL:
      return std::nullopt;
    default:
      return Listening::kSilent;
  }
}

Error lost(const std::string& peer, int failure, const std::string& progress) {
  const bool closed = failure == 0 || failure == EPIPE || failure == ECONNRESET;
  return Error(
      ErrorCode::kPeerLost,
      closed ? fmt::format("{} closed the connection{}", peer, progress)
             : fmt::format("{} is out of reach{}: {}", peer, progress, std::strerror(failure)));
}

/// Empty with errno if it cannot listen there.
UniqueFd listen_at(const addrinfo& address) {
  UniqueFd fd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return {};
  // "::" serves IPv4 too, also if net.ipv6.bindv6only is set.
  if (address.ai_family == AF_INET6) set_option(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (!bind_port(fd.get(), address.ai_addr, address.ai_addrlen) ||
      ::listen(fd.get(), SOMAXCONN) != 0) {
    const int failure = errno;
    fd.reset();
    errno = failure;
  }
  return fd;
}

UniqueFd try_listen(const std::string& host, int port, int* failure) {
  const AddressList list = look_up(host, port, AI_PASSIVE);
  for (const addrinfo* address = list.get(); address != nullptr; address = address->ai_next) {
    if (UniqueFd fd = listen_at(*address)) return fd;
    *failure = errno;
  }
  return {};
}

/// Longer than ARP's three seconds, after which an address that no host of this network has is
/// unreachable. Bounded, so that an address whose packets are dropped does not delay the next one.
constexpr auto kAddressLimit = 4s;

/// Connects to the first address that answers. If none does, `unreachable` receives the errno for
/// the lack of a way to any of them; 0 if one refused or was silent. An attempt that the deadline
/// cut short shows nothing.
UniqueFd connect_to_any(const addrinfo* list, Deadline deadline, int* unreachable) {
  bool refused_or_silent = false;
  int other = 0;
  for (const addrinfo* address = list; address != nullptr; address = address->ai_next) {
    UniqueFd fd = try_connect(*address, deadline.at_most(kAddressLimit));
    const int failure = errno;
    if (fd && !connected_to_itself(fd.get())) return fd;
    if (!fd && failure == EINPROGRESS && deadline.passed()) continue;
    if (fd || failure == ECONNREFUSED || failure == EINPROGRESS) {
      refused_or_silent = true;
    } else {
      other = failure;
    }
    if (fd) abort_connection(std::move(fd));
  }
  if (refused_or_silent || other != 0) *unreachable = refused_or_silent ? 0 : other;
  return {};
}

}  // namespace

void set_option(int fd, int level, int option, int value) {
  ::setsockopt(fd, level, option, &value, sizeof value);
}

bool await_ready(int fd, short events, Deadline deadline, const std::function<void()>& look) {
  constexpr auto kPause = 100ms;
  Deadline pause = look ? deadline.at_most(kPause) : deadline;
  while (true) {
    pollfd item{fd, events, 0};
    const int ready = ::poll(&item, 1, pause.left_poll_ms());
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) throw io_error("poll");
    if (!pause.passed()) continue;  // a signal
    if (deadline.passed()) return false;
    if (look) look();
    pause = deadline.at_most(kPause);
  }
}

UniqueFd tcp_listen(const std::string& host, int port) {
  const bool all = host == kAllAddresses;
  int failure = 0;
  UniqueFd fd = try_listen(all ? "::" : host, port, &failure);
  if (!fd && all && failure != EADDRINUSE) fd = try_listen("0.0.0.0", port, &failure);
  if (fd) return fd;
  errno = failure;
  if (failure == EADDRINUSE) throw Error(ErrorCode::kUnavailable, port_taken_text(port));
  throw io_error("listen on " + (all ? "all addresses, port " + std::to_string(port)
                                     : to_string(Endpoint{host, port})));
}

int local_port(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw io_error("getsockname");
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

bool has_waiting_client(int listener) {
  pollfd item{listener, POLLIN, 0};
  return ::poll(&item, 1, 0) > 0;
}

std::string peer_name(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return "closed connection";
  ucred process{};
  socklen_t room = sizeof process;
  if (address.ss_family == AF_UNIX &&
      ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &process, &room) == 0) {
    return fmt::format("process {} of this host", process.pid);
  }
  return address_text(reinterpret_cast<sockaddr*>(&address), size, true);
}

bool connected_to_itself(int fd) {
  sockaddr_storage mine{};
  sockaddr_storage theirs{};
  socklen_t size = sizeof mine;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&mine), &size);
  const std::string name = address_text(reinterpret_cast<sockaddr*>(&mine), size, true);
  size = sizeof theirs;
  ::getpeername(fd, reinterpret_cast<sockaddr*>(&theirs), &size);
  return name == address_text(reinterpret_cast<sockaddr*>(&theirs), size, true);
}

void abort_connection(UniqueFd fd) {
  const linger at_once{1, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

ConnectAttempt attempt_connect(const addrinfo& address, Deadline deadline,
                               const std::function<void()>& look) {
  UniqueFd fd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return {{}, errno, true};
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return {std::move(fd)};
  if (errno != EINPROGRESS) return {{}, errno};
  if (!await_ready(fd.get(), POLLOUT, deadline, look)) return {{}, EINPROGRESS};
  int failure = 0;
  socklen_t size = sizeof failure;
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &failure, &size);
  if (failure != 0) fd.reset();
  return {std::move(fd), failure};
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

Listening probe(const Endpoint& endpoint, Deadline deadline) {
  if (endpoint.host.empty()) return Listening::kSilent;
  std::string problem;
  return probe(look_up(endpoint.host, endpoint.port, &problem).get(), deadline);
}

bool somebody_listens(const Endpoint& endpoint, Deadline deadline) {
  return probe(endpoint, deadline) == Listening::kYes;
}

UniqueFd tcp_connect(const Endpoint& endpoint, Deadline deadline) {
  const AddressList list = look_up(endpoint.host, endpoint.port);
  auto pause = std::chrono::milliseconds(1);
  int unreachable = 0;
  while (true) {
    if (UniqueFd fd = connect_to_any(list.get(), deadline, &unreachable)) return fd;
    if (deadline.passed()) {
      throw Error(
          ErrorCode::kTimeout,
          fmt::format("no answer from {}: {}", to_string(endpoint),
                      unreachable != 0 ? std::strerror(unreachable)
                                       : "nothing listens there, or a firewall is in the way"));
    }
    std::this_thread::sleep_for(std::min(pause, deadline.left()));
    pause = std::min(pause * 2, std::chrono::milliseconds(200));
  }
}

UniqueFd tcp_connect_once(const Endpoint& endpoint, Deadline deadline,
                          const std::function<void()>& look) {
  const AddressList list = look_up(endpoint.host, endpoint.port);
  bool refused = false;
  int failed = 0;
  for (const addrinfo* address = list.get(); address != nullptr; address = address->ai_next) {
    errno = 0;
    UniqueFd fd = try_connect(*address, deadline, look);
    if (!fd && errno != EINPROGRESS && errno != EINTR) failed = errno;
    refused = refused || (!fd && errno == ECONNREFUSED);
    if (fd && !connected_to_itself(fd.get())) return fd;
    if (fd) abort_connection(std::move(fd));
  }
  const auto place = to_string(endpoint);
  if (refused) throw Error(ErrorCode::kPeerLost, "no process listens at " + place + " any more");
  throw Error(ErrorCode::kTimeout,
              fmt::format("no answer from {}: {}", place,
                          failed != 0 ? std::strerror(failed) : "a firewall may be in the way"));
}

UniqueFd tcp_accept(int listener, Deadline deadline) {
  while (true) {
    UniqueFd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (fd) {
      set_option(fd.get(), IPPROTO_TCP, TCP_NODELAY, 1);
      return fd;
    }
    if (errno == EAGAIN) {
      if (!await_ready(listener, POLLIN, deadline))
        throw Error(ErrorCode::kTimeout, "no client connected in time");
    } else if (errno != EINTR && errno != ECONNABORTED) {
      throw io_error("accept");
    }
  }
}

bool is_loopback(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw io_error("getsockname");
  if (address.ss_family == AF_INET6) {
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<sockaddr_in6*>(&address)->sin6_addr) != 0;
  }
  const auto* v4 = reinterpret_cast<sockaddr_in*>(&address);
  return address.ss_family == AF_INET && ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

bool is_lost(int failure) {
  return failure == ECONNRESET || failure == ETIMEDOUT || failure == EHOSTUNREACH ||
         failure == ENETUNREACH;
}

void enable_keep_alive(int fd) {
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 15);  // s
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);  // s
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 30'000);  // ms, for bytes sent and not acknowledged
}

void send_all(int fd, const void* data, size_t size, Deadline deadline, const std::string& peer) {
  const auto* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t put = ::send(fd, next, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put >= 0) {
      next += put;
      size -= static_cast<size_t>(put);
    } else if (errno == EAGAIN) {
      if (!await_ready(fd, POLLOUT, deadline)) {
        throw Error(ErrorCode::kTimeout,
                    fmt::format("{} does not read: {} bytes left to send", peer, size));
      }
    } else if (errno == EPIPE || is_lost(errno)) {
      throw lost(peer, errno, "");
    } else if (errno != EINTR) {
      throw io_error("send to " + peer);
    }
  }
}

namespace {

/// Up to `left` bytes. `wanted`: the total number if known, for messages.
size_t recv_of(int fd, void* data, size_t left, std::optional<size_t> wanted, Deadline deadline,
               const std::string& peer) {
  while (true) {
    const ssize_t got = ::recv(fd, data, left, MSG_DONTWAIT);
    if (got > 0) return static_cast<size_t>(got);
    if (got == 0 || is_lost(errno)) {
      throw lost(peer, got == 0 ? 0 : errno,
                 wanted ? fmt::format(" after {} of {} bytes", *wanted - left, *wanted) : "");
    }
    if (errno == EAGAIN) {
      if (!await_ready(fd, POLLIN, deadline)) {
        throw Error(ErrorCode::kTimeout, wanted ? fmt::format("{} sent {} of {} bytes in time",
                                                              peer, *wanted - left, *wanted)
                                                : peer + " does not answer");
      }
    } else if (errno != EINTR) {
      throw io_error("receive from " + peer);
    }
  }
}

}  // namespace

void recv_all(int fd, void* data, size_t size, Deadline deadline, const std::string& peer) {
  auto* next = static_cast<char*>(data);
  for (size_t left = size; left > 0;) {
    const size_t got = recv_of(fd, next, left, size, deadline, peer);
    next += got;
    left -= got;
  }
}

size_t recv_some(int fd, void* data, size_t size, Deadline deadline, const std::string& peer) {
  return recv_of(fd, data, size, std::nullopt, deadline, peer);
}

}  // namespace lockstep::inline internal
