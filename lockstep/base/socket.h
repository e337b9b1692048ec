#pragma once
// TCP with a deadline on every call and the peer's address in every error.

#include <cstdint>
#include <functional>
#include <string>

#include "lockstep/base/addresses.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/deadline.h"

namespace lockstep {

/// As host of tcp_listen(): every address of this host, IPv6 and IPv4; where the kernel has no
/// IPv6, those of IPv4.
inline constexpr char kAllAddresses[] = "*";

/// A listening socket, non-blocking and close-on-exec. Port 0: as bind_port() in port_range.h has
/// it; see local_port(). Errors: kUnavailable when the port is taken (names it), kIo.
UniqueFd tcp_listen(const std::string& host, int port);
int local_port(int fd);
/// Address of the other end for messages: "10.0.0.1:2345", or "process 123 of this host".
std::string peer_name(int fd);

/// Connects, trying again with back-off while nobody listens yet, until the deadline.
/// The socket is blocking, with TCP_NODELAY. Errors: kTimeout, or kUnavailable when the name
/// cannot be resolved.
UniqueFd tcp_connect(const Endpoint& endpoint, Deadline deadline);

/// One attempt, at a place where somebody did listen. `look`, when set, is called some ten times a
/// second meanwhile and may throw. Errors: kPeerLost (refused), kTimeout, kUnavailable as above.
UniqueFd tcp_connect_once(const Endpoint& endpoint, Deadline deadline,
                          const std::function<void()>& look = {});

enum class Listening {
  kYes,
  kNo,      ///< The host says that nobody does.
  kSilent,  ///< It says nothing in time, or cannot be reached.
};
/// One attempt to connect. Of a name's addresses those that this host has no way to do not count,
/// unless that is so of all.
Listening probe(const Endpoint& endpoint, Deadline deadline);
Listening probe(const addrinfo* list, Deadline deadline);
/// The same: false as soon as the host says that nobody listens there, or when the deadline passes
/// without an answer. (tcp_connect() waits for somebody to listen.)
bool somebody_listens(const Endpoint& endpoint, Deadline deadline);

/// What one attempt to connect to one address gave: a non-blocking socket, or why not.
struct ConnectAttempt {
  UniqueFd fd;
  int failure = 0;         ///< errno; EINPROGRESS: no answer until the deadline.
  bool no_socket = false;  ///< This host could not even make a socket of that family.
};
/// `look`, when set, is called some ten times a second meanwhile and may throw.
ConnectAttempt attempt_connect(const addrinfo& address, Deadline deadline,
                               const std::function<void()>& look = {});

/// A port of this host that nobody serves can connect to itself: when the kernel chooses that very
/// port for the client's end, the two openings meet. tcp_connect() does not take it for a server.
bool connected_to_itself(int fd);
/// Closes without the minute in which the kernel keeps the port of a connection that was closed in
/// order, so that a server can listen there. What was sent and not received is lost.
void abort_connection(UniqueFd fd);

/// Accepts one connection from a listening socket. Errors: kTimeout.
UniqueFd tcp_accept(int listener, Deadline deadline);

/// True when the socket's own address is loopback, so that only this host can reach it.
bool is_loopback(int fd);

/// Has the kernel close a connection whose other host is gone, within about 30 s of silence.
void enable_keep_alive(int fd);

/// Whole buffers, whatever the socket's blocking mode. Errors: kTimeout, kPeerLost (closed or
/// reset); both name `peer`.
void send_all(int fd, const void* data, size_t size, Deadline deadline, const std::string& peer);
void recv_all(int fd, void* data, size_t size, Deadline deadline, const std::string& peer);
/// What comes next, 1 to `size` bytes; says how many. Errors: as recv_all().
size_t recv_some(int fd, void* data, size_t size, Deadline deadline, const std::string& peer);

}  // namespace lockstep
