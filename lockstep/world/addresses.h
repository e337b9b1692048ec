#pragma once
// This host's addresses for others, from routes and interfaces but never from its name; and waiting
// for another host's name.

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/base/addresses.h"
#include "lockstep/deadline.h"
#include "lockstep/world/environment.h"

namespace lockstep::inline internal {

/// Interfaces that a variable names: by whole names or prefixes, or all others. Without names: all.
struct InterfaceRule {
  std::vector<std::string> names;
  bool whole = false;
  bool others = false;

  bool takes(const std::string& interface) const;
  bool operator==(const InterfaceRule&) const = default;
};

/// HCCL_SOCKET_IFNAME: "eth,enp" are prefixes, "=eth0,ib0" whole names; "^eth", "^=eth0" mean all
/// others.
InterfaceRule parse_interface_rule(const std::string& text);

/// This host's address according to variables.
struct AddressWish {
  std::string variable;  ///< The variable. Empty: none.
  std::string value;     ///< Its value.
  std::string address;   ///< The only address; empty: of `interfaces`.
  InterfaceRule interfaces;
};

/// The first non-empty of LOCKSTEP_ADDRESS, LOCKSTEP_IFNAME (a whole name), and HCCL's HCCL_IF_IP,
/// HCCL_SOCKET_IFNAME. Pure.
AddressWish wished_address(const Environment& environment);

/// Addresses that other hosts can use, best first; loopback only if it is named, never link-local.
/// First `towards`, the kernel's source addresses to the launcher and the world. Then others, IPv4
/// before IPv6, bridges of containers and virtual machines last. Only those of `wanted`. Pure.
std::vector<std::string> order_addresses(const std::vector<InterfaceAddress>& all,
                                         const std::vector<std::string>& towards,
                                         const InterfaceRule& wanted);

/// Addresses by which other hosts may reach this one: the requested one, or those of the requested
/// interfaces, else all. `launcher_hosts`: addresses of the launcher's host. Errors:
/// kInvalidArgument if no address is left, or HCCL_IF_IP is not this host's.
std::vector<std::string> own_addresses(const Environment& environment,
                                       const std::vector<std::string>& launcher_hosts);

/// Listening address of a server that others reach at `host`, an address or name of this host.
/// That address alone if `host` is loopback, else every one, as a name may have IPv6 only.
std::string listen_host(const std::string& host);
/// Where this host itself reaches that server.
std::string host_for_itself(const std::string& host);

/// The addresses at which mpirun or srun listens, from its variables.
std::vector<std::string> launcher_hosts(const Environment& environment);

struct NameWait {
  std::function<bool(const std::string&)> known = can_resolve;
  std::chrono::milliseconds report_after{5000};  ///< After this time it logs its wait, once.
  std::chrono::milliseconds pause{200};          ///< Between two lookups.
};

/// `host` once it can be resolved: a pod's name is published some time after the pod's start. An
/// address literal is returned unchanged. If a name with a domain is unknown, its short form is
/// returned if known. Errors: kTimeout naming the host and the time waited.
std::string wait_for_name(const std::string& host, Deadline deadline, const NameWait& how = {});

}  // namespace lockstep::inline internal
