#pragma once
// This host's addresses for others, by routing and interfaces and never by its name; and waiting
// for the name of another.

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/base/addresses.h"
#include "lockstep/deadline.h"
#include "lockstep/world/environment.h"

namespace lockstep {

/// Interfaces that a variable names: by their whole names or by how these begin, or all but those.
/// Without names: all.
struct InterfaceRule {
  std::vector<std::string> names;
  bool whole = false;
  bool others = false;

  bool takes(const std::string& interface) const;
  bool operator==(const InterfaceRule&) const = default;
};

/// HCCL_SOCKET_IFNAME: "eth,enp" by their beginnings, "=eth0,ib0" by whole names; "^eth", "^=eth0"
/// all but those.
InterfaceRule parse_interface_rule(const std::string& text);

/// What the variables say about this host's address.
struct AddressWish {
  std::string variable;  ///< Which one says so. Empty: none does.
  std::string value;     ///< As it is there.
  std::string address;   ///< This one alone; empty: of `interfaces`.
  InterfaceRule interfaces;
};

/// The first that is set and not empty of LOCKSTEP_ADDRESS, LOCKSTEP_IFNAME (a whole name), and
/// HCCL's HCCL_IF_IP, HCCL_SOCKET_IFNAME. Pure.
AddressWish wished_address(const Environment& environment);

/// Best first, without those that other hosts cannot use (loopback unless it is named, link-local):
/// `towards`, the addresses from which the kernel would reach the launcher and the world; then
/// others, IPv4 before IPv6, bridges of containers and virtual machines last. Only those of
/// `wanted`. Pure.
std::vector<std::string> order_addresses(const std::vector<InterfaceAddress>& all,
                                         const std::vector<std::string>& towards,
                                         const InterfaceRule& wanted);

/// Addresses under which other hosts may reach this one: the wished one, or those of the wished
/// interfaces, else all. `launcher_hosts`: where the launcher runs, as addresses. Errors:
/// kInvalidArgument when no address is left, or HCCL_IF_IP is not this host's.
std::vector<std::string> own_addresses(const Environment& environment,
                                       const std::vector<std::string>& launcher_hosts);

/// Where a server listens that others reach at `host`, an address or a name of this host: on
/// loopback alone where that is all, else on every address, as a name may be of IPv6 only.
std::string listen_host(const std::string& host);

/// The addresses at which mpirun or srun listens, out of its variables.
std::vector<std::string> launcher_hosts(const Environment& environment);

struct NameWait {
  std::function<bool(const std::string&)> known = can_resolve;
  std::chrono::milliseconds say_after{5000};  ///< Then it says for what it waits, once.
  std::chrono::milliseconds pause{200};       ///< Between two lookups.
};

/// `host` once it can be looked up: a pod's name is published some time after the pod has started.
/// An address literal is returned as it is; of a name with a domain that is unknown the short form,
/// where that is known. Errors: kTimeout naming the host and how long it was asked for.
std::string wait_for_name(const std::string& host, Deadline deadline, const NameWait& how = {});

}  // namespace lockstep
