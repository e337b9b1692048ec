#pragma once
// Where a client of torch's store comes from.

#include <string>

namespace lockstep {

/// Of a name as peer_name() gives it: the address without the port.
std::string host_of_client(const std::string& peer);

/// True if the other end of a TCP connection is on this host: both ends have one address, or
/// loopback's.
bool is_of_this_host(int fd);

}  // namespace lockstep
