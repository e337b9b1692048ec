#pragma once
// Where a client of torch's store comes from.

#include <cstdint>

namespace lockstep::inline internal {

/// True if the other end of a TCP connection is on this host: both ends have one address, or
/// loopback's.
bool is_of_this_host(int fd);

enum class ClientOrigin : uint8_t {
  kOwn,    ///< Of this process's user or of root; also if the kernel has no such data.
  kOther,  ///< Of another user.
  kGone,   ///< Its end is closed.
};
/// The user of the other end of a connection within this host.
ClientOrigin client_origin(int fd);

}  // namespace lockstep::inline internal
