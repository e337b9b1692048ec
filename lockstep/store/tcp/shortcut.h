#pragma once
// A bypass of TCP for clients on the server's own host: a socket in the kernel's abstract unix
// namespace, named after the server's address. It halves the cost of a call. It has no file, lives
// as long as its server, and is visible within its network namespace. The layers above it,
// including handshake and secret, are the same as over TCP. If it is unavailable, TCP is used.

#include <unistd.h>

#include "lockstep/base/addresses.h"
#include "lockstep/base/unique_fd.h"

namespace lockstep::inline internal {

/// Listens beside `listener`, a listening TCP socket; non-blocking. Empty if unavailable.
UniqueFd listen_shortcut(int listener);

/// Connects to the server of `place` if `place` is a numeric address of this host, and a process of
/// `user` offers a shortcut to it. The kernel reports the peer's uid, so another user cannot
/// impersonate the server. Blocking, like tcp_connect()'s; empty otherwise. Never waits.
UniqueFd connect_shortcut(const Endpoint& place, uid_t user = ::geteuid());

}  // namespace lockstep::inline internal
