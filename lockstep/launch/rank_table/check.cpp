#include "lockstep/launch/rank_table/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "lockstep/base/counted.h"

namespace lockstep::inline internal {
namespace {

using Faults = std::vector<RankTableFault>;

void append(Faults* faults, const Faults& more) {
  faults->insert(faults->end(), more.begin(), more.end());
}

/// HCCL sorts its servers by their names as texts.
void check_server_order(const RankTable& table, Faults* faults) {
  std::vector<size_t> order(table.servers.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return table.servers[a].server_id < table.servers[b].server_id;
  });
  int highest = -1;
  size_t holder = 0;
  for (const size_t index : order) {
    int low = std::numeric_limits<int>::max();
    int high = -1;
    for (const RankTableDevice& device : table.servers[index].devices) {
      if (device.rank < 0) continue;
      low = std::min(low, device.rank);
      high = std::max(high, device.rank);
    }
    if (low < highest) {
      faults->push_back(
          {false, fmt::format("$.server_list[{}].server_id", index),
           fmt::format("\"{}\" comes after \"{}\" as a text, but rank {} comes before "
                       "its rank {}; ranks must increase with server_id",
                       table.servers[index].server_id, table.servers[holder].server_id, low,
                       highest)});
    }
    if (high > highest) {
      highest = high;
      holder = index;
    }
  }
}

void check_all_have_addresses(const RankTable& table, Faults* faults) {
  for (size_t i = 0; i < table.servers.size(); ++i) {
    const auto& devices = table.servers[i].devices;
    for (size_t j = 0; j < devices.size(); ++j) {
      if (!devices[j].device_ip.empty()) continue;
      faults->push_back({false, fmt::format("$.server_list[{}].device[{}].device_ip", i, j),
                         "missing, though other devices have one"});
    }
  }
}

std::string device_list(const RankTableServer& server) {
  std::string text;
  for (const auto& device : server.devices)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", device.device_id);
  return text;
}

void check_device_set(const RankTableServer& server, const std::string& path, bool alone,
                      Faults* faults) {
  const size_t count = server.devices.size();
  const auto warn = [&](std::string text) { faults->push_back({true, path, std::move(text)}); };
  bool low = false;
  bool high = false;
  for (const RankTableDevice& device : server.devices) {
    if (device.device_id > 7)
      return warn(fmt::format("device {}: Ascend hosts have devices 0 to 7", device.device_id));
    (device.device_id < 4 ? low : high) = true;
  }
  if (!alone && count != 8) {
    warn(fmt::format("{}: of several hosts each must use 8",
                     counted(static_cast<int64_t>(count), "device")));
  } else if (count != 1 && count != 2 && count != 4 && count != 8) {
    warn(fmt::format("{} devices: a host must use 1, 2, 4 or 8", count));
  } else if ((count == 2 || count == 4) && low && high) {
    warn(fmt::format("devices {}: 2 or 4 devices must all be of 0-3 or all of 4-7",
                     device_list(server)));
  }
}

/// Checks the subnets. The table does not name its generation of hosts, so one that fits is enough.
void check_generations(const RankTable& table, Faults* faults) {
  constexpr size_t kShown = 8;  // one wrong subnet of many hosts appears in every pair
  Faults told;
  for (const auto generation : {AscendGeneration::kTraining, AscendGeneration::kA2}) {
    Faults these = check_subnets(table, generation);
    if (these.empty()) return;
    const size_t count = these.size();
    these.resize(std::min(count, kShown));
    append(&told, these);
    if (count > kShown) {
      told.push_back({true, "$.server_list",
                      fmt::format("{}: {} more", to_string(generation), count - kShown)});
    }
  }
  append(faults, told);
}

}  // namespace

std::vector<RankTableFault> check_hccl_rules(const RankTable& table) {
  Faults faults;
  if (!is_for_ascend(table)) return faults;
  check_server_order(table, &faults);
  check_all_have_addresses(table, &faults);
  append(&faults, check_addresses(table));
  for (size_t i = 0; i < table.servers.size(); ++i) {
    check_device_set(table.servers[i], fmt::format("$.server_list[{}].device", i),
                     table.servers.size() == 1, &faults);
  }
  check_generations(table, &faults);
  return faults;
}

std::vector<RankTableFault> check_rank_table(std::string_view json) {
  RankTableReading reading = read_rank_table(json);
  const bool empty = reading.table.servers.empty();
  if (!empty || !any_error(reading.faults)) {
    append(&reading.faults, check_ranks(reading.table));
    append(&reading.faults, check_hccl_rules(reading.table));
  }
  std::stable_sort(reading.faults.begin(), reading.faults.end(),
                   [](const auto& a, const auto& b) { return a.warning < b.warning; });
  return std::move(reading.faults);
}

}  // namespace lockstep::inline internal
