#pragma once
// Tables for tests.

#include <fmt/format.h>

#include "lockstep/world/rank_table/rank_table.h"

namespace lockstep::testing {

/// `devices` devices on each of the servers "10.0.0.1", "10.0.0.2" ..., with addresses as the Atlas
/// training series requires (192.1.27.6, 192.2.27.6 ... 192.1.27.7 ...).
inline RankTable sample_table(int servers, int devices) {
  RankTable table;
  table.server_count = servers;
  for (int i = 0; i < servers; ++i) {
    RankTableServer server;
    server.server_id = fmt::format("10.0.0.{}", i + 1);
    for (int j = 0; j < devices; ++j) {
      const auto address = fmt::format("192.{}.27.{}", j % 4 + 1, 6 + 2 * i + j / 4);
      server.devices.push_back({j, address, "", i * devices + j});
    }
    table.servers.push_back(server);
  }
  return table;
}

}  // namespace lockstep::testing
