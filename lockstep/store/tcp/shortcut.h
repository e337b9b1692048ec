#pragma once
// The way round TCP for clients on the server's own host: a socket of the kernel's abstract unix
// namespace, named after the place where the server listens. A call costs half as much that way.
// It has no file, lives as long as its server, and is seen where the server's loopback is seen: in
// its network namespace. Everything above it, handshake and secret too, is as over TCP; where it
// cannot be had, TCP is used and nobody needs to know.

#include <unistd.h>

#include "lockstep/base/socket.h"
#include "lockstep/base/unique_fd.h"

namespace lockstep {

/// Listens beside `listener`, a listening TCP socket; non-blocking. Empty when it cannot be had.
UniqueFd listen_shortcut(int listener);

/// Connects to the server of `place` if `place` is an address of this host, in figures, and a
/// process of `user` offers a shortcut to it: the kernel tells whose it is, so nobody else can draw
/// clients to himself by taking the name. Blocking, as of tcp_connect(). Empty otherwise; never
/// waits.
UniqueFd connect_shortcut(const Endpoint& place, uid_t user = ::geteuid());

}  // namespace lockstep
