// Subnets of device addresses: equal where they must be, and different where they must be.

#include <arpa/inet.h>
#include <fmt/format.h>

#include <array>
#include <map>

#include "lockstep/launch/rank_table/check.h"

namespace lockstep::inline internal {
namespace {

/// The bytes of an address that name its subnet; empty for an invalid address.
std::string subnet_of(const std::string& address) {
  std::array<char, 16> bytes{};
  if (::inet_pton(AF_INET, address.c_str(), bytes.data()) == 1) return {bytes.data(), 3};
  if (::inet_pton(AF_INET6, address.c_str(), bytes.data()) == 1) return {bytes.data(), 8};
  return "";
}

struct DeviceAddress {
  std::string path;
  std::string address;
  std::string subnet;
  size_t server = 0;
  int device_id = 0;
};

std::vector<DeviceAddress> device_addresses(const RankTable& table) {
  std::vector<DeviceAddress> result;
  for (size_t i = 0; i < table.servers.size(); ++i) {
    const auto& devices = table.servers[i].devices;
    for (size_t j = 0; j < devices.size(); ++j) {
      const std::string& address = devices[j].device_ip;
      if (address.empty()) continue;
      result.push_back({fmt::format("$.server_list[{}].device[{}].device_ip", i, j), address,
                        subnet_of(address), i, devices[j].device_id});
    }
  }
  return result;
}

RankTableFault subnet_fault(AscendGeneration generation, const DeviceAddress& device,
                            const DeviceAddress& other, const char* rule) {
  return {true, device.path,
          fmt::format("{}: {} and {} ({}) are in {}", to_string(generation), device.address,
                      other.address, other.path, rule)};
}

/// Rules within a host: an id shares a subnet with its twin (0 and 4), but not with its neighbours.
void check_within_host(const std::vector<DeviceAddress>& devices,
                       std::vector<RankTableFault>* faults) {
  constexpr auto kTraining = AscendGeneration::kTraining;
  std::map<std::pair<size_t, int>, const DeviceAddress*> by_pair;            // host, id modulo 4
  std::map<std::tuple<size_t, int, std::string>, const DeviceAddress*> one;  // host, half, subnet
  for (const DeviceAddress& device : devices) {
    if (device.device_id < 0 || device.device_id > 7) continue;
    const auto [twin, first] = by_pair.try_emplace({device.server, device.device_id % 4}, &device);
    if (!first && twin->second->subnet != device.subnet) {
      faults->push_back(subnet_fault(kTraining, device, *twin->second,
                                     "different subnets, devices N and N+4 share one"));
    }
    const auto [neighbour, alone] =
        one.try_emplace({device.server, device.device_id / 4, device.subnet}, &device);
    if (!alone) {
      faults->push_back(subnet_fault(kTraining, device, *neighbour->second,
                                     "one subnet, devices 0-3 and 4-7 have four each"));
    }
  }
}

/// Equal ids (kTraining) or all ids (kA2) share the subnet of the first.
void check_shared(const std::vector<DeviceAddress>& devices, AscendGeneration generation,
                  std::vector<RankTableFault>* faults) {
  const bool training = generation == AscendGeneration::kTraining;
  std::map<int, const DeviceAddress*> first_of;
  for (const DeviceAddress& device : devices) {
    const auto [first, is_first] = first_of.try_emplace(training ? device.device_id : 0, &device);
    if (is_first || first->second->subnet == device.subnet) continue;
    faults->push_back(subnet_fault(generation, device, *first->second,
                                   training ? "different subnets, equal device ids share one"
                                            : "different subnets, all devices share one"));
  }
}

}  // namespace

std::string_view to_string(AscendGeneration generation) {
  return generation == AscendGeneration::kTraining ? "Atlas training series" : "Atlas A2";
}

std::vector<RankTableFault> check_subnets(const RankTable& table, AscendGeneration generation) {
  const auto devices = device_addresses(table);
  std::vector<RankTableFault> faults;
  if (generation == AscendGeneration::kTraining) check_within_host(devices, &faults);
  check_shared(devices, generation, &faults);
  return faults;
}

std::vector<RankTableFault> check_addresses(const RankTable& table) {
  std::vector<RankTableFault> faults;
  std::map<std::string, std::string> path_of;
  for (const DeviceAddress& device : device_addresses(table)) {
    const auto [other, is_new] = path_of.try_emplace(device.address, device.path);
    if (is_new) continue;
    faults.push_back({false, device.path,
                      fmt::format("\"{}\" is also that of {}", device.address, other->second)});
  }
  return faults;
}

}  // namespace lockstep::inline internal
