#pragma once
// TCP with a deadline on every call and the peer's address in every error.

#include <functional>
#include <string>

#include "lockstep/base/addresses.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/deadline.h"

namespace lockstep::inline internal {

/// As host of tcp_listen(): every address of this host, IPv6 and IPv4; IPv4 only if the kernel has
/// no IPv6.
inline constexpr char kAllAddresses[] = "*";

/// setsockopt(2) of a number; a failure does not matter.
void set_option(int fd, int level, int option, int value);

/// Waits until `fd` is ready for `events`, as of poll(2). False: not before the deadline. `look`,
/// if set, is called some ten times per second meanwhile and may throw. Errors: kIo.
bool await_ready(int fd, short events, Deadline deadline, const std::function<void()>& look = {});

/// A listening socket, non-blocking and close-on-exec. Port 0: as in bind_port() of port_range.h;
/// see local_port(). Errors: kUnavailable if the port is taken (names it), kIo.
UniqueFd tcp_listen(const std::string& host, int port);
int local_port(int fd);
/// Whether a client waits for accept(2) of this listening socket.
bool has_waiting_client(int listener);

/// Address of the other end for messages: "10.0.0.1:2345", or "process 123 of this host".
std::string peer_name(int fd);

/// Connects; until the deadline it retries with back-off while no server listens. The socket is
/// blocking, with TCP_NODELAY. Errors: kTimeout, with errno's meaning if no address of the host can
/// be reached; kUnavailable if the name cannot be resolved.
UniqueFd tcp_connect(const Endpoint& endpoint, Deadline deadline);

/// One attempt, at an address where a server did listen. `look`, if set, is called some ten times
/// per second meanwhile and may throw. Errors: kPeerLost (refused), kTimeout, kUnavailable as
/// above.
UniqueFd tcp_connect_once(const Endpoint& endpoint, Deadline deadline,
                          const std::function<void()>& look = {});

enum class Listening {
  kYes,
  kNo,      ///< The host answers that there is no listener.
  kSilent,  ///< It does not answer in time, or is unreachable.
};
/// One attempt to connect. Of a name's addresses, those without a route from this host do not
/// count, unless all lack one.
Listening probe(const Endpoint& endpoint, Deadline deadline);
Listening probe(const addrinfo* list, Deadline deadline);
/// The same: false as soon as the host answers that there is no listener, or if the deadline passes
/// without an answer. (tcp_connect() waits for a listener.)
bool somebody_listens(const Endpoint& endpoint, Deadline deadline);

/// The result of one attempt to connect to one address: a non-blocking socket, or the failure.
struct ConnectAttempt {
  UniqueFd fd;
  int failure = 0;         ///< errno; EINPROGRESS: no answer until the deadline.
  bool no_socket = false;  ///< This host could not even create a socket of that family.
};
/// `look`, if set, is called some ten times per second meanwhile and may throw.
ConnectAttempt attempt_connect(const addrinfo& address, Deadline deadline,
                               const std::function<void()>& look = {});

/// True if the socket is connected to itself. That happens on a port of this host without a server:
/// if the kernel chooses that very port for the client's end, the two openings meet. So
/// tcp_connect() does not take it for a server.
bool connected_to_itself(int fd);
/// Closes without TIME_WAIT, in which the kernel keeps the port of a closed connection for a
/// minute. So a server can listen there at once. Bytes sent and not yet received are lost.
void abort_connection(UniqueFd fd);

/// Accepts one connection from a listening socket. Errors: kTimeout.
UniqueFd tcp_accept(int listener, Deadline deadline);

/// True if the socket's own address is loopback, so that only this host can reach it.
bool is_loopback(int fd);

/// True if errno `failure` of a connection means its loss. The other end reset it, or this kernel
/// did, because the host there is silent or unreachable.
bool is_lost(int failure);

/// Makes the kernel close a connection whose other host is gone, within about 30 s of silence.
void enable_keep_alive(int fd);

/// Whole buffers, whatever the socket's blocking mode. Errors: kTimeout, kPeerLost (closed or
/// reset); both name `peer`.
void send_all(int fd, const void* data, size_t size, Deadline deadline, const std::string& peer);
void recv_all(int fd, void* data, size_t size, Deadline deadline, const std::string& peer);
/// Receives the next bytes, 1 to `size`; returns their number. Errors: as recv_all().
size_t recv_some(int fd, void* data, size_t size, Deadline deadline, const std::string& peer);

}  // namespace lockstep::inline internal
