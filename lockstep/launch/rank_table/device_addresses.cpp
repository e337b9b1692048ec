#include "lockstep/launch/rank_table/device_addresses.h"

#include "lockstep/base/file.h"
#include "lockstep/base/literals.h"
#include "lockstep/launch/process/subprocess.h"

namespace lockstep {

std::optional<DeviceAddresses> ask_hccn_tool(DeviceRange range) {
  DeviceAddresses addresses;
  for (int id = range.first; id < range.last; ++id) {
    const std::string name = std::to_string(id);
    const auto answer = run_program({"hccn_tool", "-i", name, "-ip", "-g"}, Deadline::after(10s));
    const auto address = parse_hccn_tool(answer.out);
    if (!address) return std::nullopt;
    addresses[name] = *address;
  }
  return addresses;
}

DeviceAddresses read_hccn_conf(const std::string& path) {
  constexpr int64_t kMaxBytes = 1 << 20;
  return parse_hccn_conf(read_file(path, kMaxBytes), path);
}

}  // namespace lockstep
