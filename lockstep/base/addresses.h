#pragma once
// Names and addresses of hosts: parsing, look-up, and the addresses of this host.

#include <netdb.h>

#include <memory>
#include <string>
#include <vector>

namespace lockstep::inline internal {

struct Endpoint {
  std::string host;  ///< Name or address literal; IPv6 without brackets.
  int port = 0;
};

/// "host:port", "[v6]:port" and "host" (default_port). Errors: kInvalidArgument.
Endpoint parse_endpoint(const std::string& text, int default_port);
std::string to_string(const Endpoint& endpoint);

using AddressList = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

/// The stream addresses of `host`; for an empty one this host's. Null if there are none: then
/// `problem` receives the reason. `flags` and `family`: as in addrinfo.
AddressList look_up(const std::string& host, int port, std::string* problem, int flags = 0,
                    int family = AF_UNSPEC);
/// The same. Errors: kUnavailable, which names the host.
AddressList look_up(const std::string& host, int port, int flags = 0);
/// True if `host` is an address, or a name that this host's resolver finds now.
bool can_resolve(const std::string& host);

/// "10.0.0.1", "fe80::1", without zone and port; empty for other families and null.
std::string in_figures(const sockaddr* address);
/// For messages: as above with the zone, and with the port on request. An IPv4-mapped IPv6 address
/// is shown as IPv4; "local socket" for other families.
std::string address_text(const sockaddr* address, socklen_t size, bool with_port);

/// "localhost", 127.x.y.z or ::1.
bool is_loopback(const std::string& host);

/// One address of an interface.
struct InterfaceAddress {
  std::string interface;
  std::string address;  ///< Numeric.
  bool up = true;
};
/// All addresses of this host. Errors: kIo.
std::vector<InterfaceAddress> interface_addresses();

/// Whether an interface of this host has `address`, in figures. False if they cannot be listed.
bool is_interface_address(const std::string& address);

/// True if `host` (name or address) means this host, by any of its addresses or any of 127/8. A
/// name that cannot be resolved counts as another host's. Cost: one look-up.
bool is_own_address(const std::string& host);

/// The address of this host that the kernel would use to reach `host`: the one to advertise.
std::string local_address_towards(const std::string& host);

}  // namespace lockstep::inline internal
