#pragma once

#include <netdb.h>

#include "lockstep/base/socket.h"
#include "lockstep/deadline.h"

namespace lockstep {

enum class Listening {
  kYes,
  kNo,      ///< The host says that nobody does.
  kSilent,  ///< It says nothing in time, or cannot be reached.
};
/// One attempt to connect. Of a name's addresses those that this host has no way to do not count,
/// unless that is so of all.
Listening probe(const Endpoint& endpoint, Deadline deadline);
Listening probe(const addrinfo* list, Deadline deadline);

/// One attempt to connect: false as soon as the host says that nobody listens there, or when the
/// deadline passes without an answer. (tcp_connect() waits for somebody to listen.)
bool somebody_listens(const Endpoint& endpoint, Deadline deadline);

}  // namespace lockstep
