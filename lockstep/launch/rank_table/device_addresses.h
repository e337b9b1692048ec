#pragma once
// Addresses of this host's Ascend devices.

#include <string>

#include "lockstep/launch/rank_table/hccl_tools.h"

namespace lockstep {

constexpr const char* kHccnConf = "/etc/hccn.conf";

/// What hccn_tool says of the devices in `range`; nothing when it is not in PATH, or one of its
/// answers (10 s each) has no address.
std::optional<DeviceAddresses> ask_hccn_tool(DeviceRange range);

/// The addresses in a hccn.conf. Errors: kNotFound, kIo, kCorrupt.
DeviceAddresses read_hccn_conf(const std::string& path);

}  // namespace lockstep
