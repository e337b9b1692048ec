#pragma once
// Where a client of torch's store comes from.

#include <string>

namespace lockstep {

/// Of a name as peer_name() gives it: the address without the port.
std::string host_of_client(const std::string& peer);

/// True if the other end of a TCP connection is on this host: both ends have one address, or
/// loopback's.
bool is_of_this_host(int fd);

/// Whether the other end of an IPv4 connection within this host belongs to this process's user or
/// to root. False also if it has closed. True if this kernel does not tell.
bool is_of_own_user_or_root(int fd);

}  // namespace lockstep
