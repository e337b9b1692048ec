#include "lockstep/world/rank_table/document.h"
#include "lockstep/world/rank_table/rank_table.h"

namespace lockstep::inline internal {
namespace {

using Json = nlohmann::ordered_json;

Json device_json(const RankTableDevice& device) {
  Json json = {{"device_id", std::to_string(device.device_id)}};
  if (!device.device_ip.empty()) json["device_ip"] = device.device_ip;
  if (!device.device_port.empty()) json["device_port"] = device.device_port;
  json["rank_id"] = std::to_string(device.rank);
  return json;
}

Json server_json(const RankTableServer& server) {
  Json devices = Json::array();
  for (const RankTableDevice& device : server.devices) devices.push_back(device_json(device));
  Json json = {{"server_id", server.server_id}, {"device", std::move(devices)}};
  if (!server.host_nic_ip.empty()) json["host_nic_ip"] = server.host_nic_ip;
  return json;
}

}  // namespace

std::string format_rank_table(const RankTable& table) {
  Json servers = Json::array();
  for (const RankTableServer& server : table.servers) servers.push_back(server_json(server));
  return rank_table::dump_document({{"version", table.version},
                                    {"server_count", std::to_string(table.server_count)},
                                    {"server_list", std::move(servers)},
                                    {"status", table.status}});
}

}  // namespace lockstep::inline internal
