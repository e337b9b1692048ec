#pragma once

#include "lockstep/base/deadline.h"
#include "lockstep/base/socket.h"

namespace lockstep {

/// One attempt to connect: false as soon as the host says that nobody listens there, or when the
/// deadline passes without an answer. (tcp_connect() waits for somebody to listen.)
bool somebody_listens(const Endpoint& endpoint, Deadline deadline);

}  // namespace lockstep
