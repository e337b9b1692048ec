#pragma once
// This host's addresses, by routing and interfaces; never by its name.

#include <string>
#include <vector>

#include "lockstep/launch/environment.h"

namespace lockstep {

/// One address of an interface that is up.
struct InterfaceAddress {
  std::string interface;
  std::string address;
};

/// Best first, without those that other hosts cannot use (loopback, link-local): `towards`, the
/// addresses from which the kernel would reach the launcher and the world; then others, IPv4 before
/// IPv6, bridges of containers and virtual machines last. Only those of `wanted` where it is not
/// empty. Pure.
std::vector<std::string> order_addresses(const std::vector<InterfaceAddress>& all,
                                         const std::vector<std::string>& towards,
                                         const std::string& wanted);

/// Addresses under which other hosts may reach this one: LOCKSTEP_ADDRESS alone where it is set,
/// those of LOCKSTEP_IFNAME where it is, else all. `launcher_hosts`: where the launcher runs, as
/// addresses. Errors: kInvalidArgument when no address is left.
std::vector<std::string> own_addresses(const Environment& environment,
                                       const std::vector<std::string>& launcher_hosts);

/// The addresses at which mpirun or srun listens, out of its variables.
std::vector<std::string> launcher_hosts(const Environment& environment);

}  // namespace lockstep
