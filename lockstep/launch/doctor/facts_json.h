#pragma once
// JSON of the facts, for the sources of this folder.

#include <nlohmann/json.hpp>

#include "lockstep/launch/doctor/facts.h"

namespace lockstep::doctor {

NLOHMANN_JSON_SERIALIZE_ENUM(FirewallState, {{FirewallState::kAbsent, "absent"},
                                             {FirewallState::kOff, "off"},
                                             {FirewallState::kOn, "on"},
                                             {FirewallState::kUnknown, "unknown"}})
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NameLookup, name, addresses, error, seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ListeningPort, asked, number, error)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DiskSpace, path, free_bytes, total_bytes, error)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Firewall, program, state, detail, chain)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(HostFacts, hostname, host_id, build_id, addresses, names, ports,
                                   somaxconn, syn_backlog, reserved_ports, port_range,
                                   hccl_base_port, open_files, shm_bytes, disks, cores,
                                   usable_cores, cpu_quota, cpu_pressure, load, instruction_set,
                                   libtorch, libtorch_isa, firewalls, device_addresses,
                                   device_links, devices_without_switch)

/// One line, for any bytes in the texts.
inline std::string to_line(const nlohmann::json& json) {
  return json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep::doctor
