#include "lockstep/launch/rank_table/hccl_tools.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/env.h"
#include "lockstep/base/file.h"
#include "lockstep/base/literals.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/launch/process/subprocess.h"
#include "lockstep/world/rank_table/document.h"

namespace lockstep::inline internal {
namespace {

constexpr int kMaxDevices = 4096;

int digit_at(const std::string& text, size_t place) {
  if (place < text.size() && text[place] >= '0' && text[place] <= '9') return text[place] - '0';
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("device num {} must look like [0,8): a digit as its character {}", text,
                          place + 1));
}

[[noreturn]] void refuse_table(const std::string& text) {
  throw Error(ErrorCode::kInvalidArgument, text);
}

void check_server_id(const std::string& server_id) {
  const bool printable = std::all_of(server_id.begin(), server_id.end(),
                                     [](char letter) { return letter > ' ' && letter < 0x7f; });
  if (!server_id.empty() && server_id.size() < 64 && printable &&
      server_id.find('/') == std::string::npos) {
    return;
  }
  refuse_table(fmt::format("server '{}': 1 to 63 characters without blanks and '/' are allowed",
                           server_id.substr(0, 80)));
}

std::string in_python_quotes(const std::string& text) {
  const bool has_single = text.find('\'') != std::string::npos;
  const char quote = has_single && text.find('"') == std::string::npos ? '"' : '\'';
  std::string shown(1, quote);
  for (const char letter : text) {
    if (letter == quote || letter == '\\') shown += '\\';
    shown += letter;
  }
  return shown + quote;
}

void refuse_errors(const std::string& name, const std::vector<RankTableFault>& faults) {
  for (const RankTableFault& fault : faults) {
    if (!fault.warning)
      throw Error(ErrorCode::kCorrupt, fmt::format("{}: {}", name, to_string(fault)));
  }
}

}  // namespace

DeviceRange parse_device_range(const std::string& text) {
  const DeviceRange range{digit_at(text, 1), digit_at(text, 3)};
  if (range.last > 8) refuse_table(fmt::format("device num {} must be in range [0,8] !", text));
  if (range.first > range.last) {
    refuse_table(fmt::format("First num {} of device num {} must less than last num {} !",
                             range.first, text, range.last));
  }
  const bool all = range.first == 0 && range.last == 8;
  if (range.first < 4 && range.last > 4 && !all) {
    refuse_table(fmt::format("device num {} must be in the same group of [0,4] or [4,8] !", text));
  }
  return range;
}

DeviceAddresses parse_hccn_conf(std::string_view text, const std::string& name) {
  DeviceAddresses addresses;
  const auto lines = split(text, '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = trimmed(lines[i]);
    constexpr std::string_view kKey = "address_";
    if (!line.starts_with(kKey)) continue;
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos || line.find('=', equals + 1) != std::string_view::npos) {
      throw Error(ErrorCode::kCorrupt,
                  fmt::format("{}:{}: '{}' must be address_N=IP", name, i + 1, line.substr(0, 80)));
    }
    const auto id = trimmed(line.substr(kKey.size(), equals - kKey.size()));
    addresses[std::string(id)] = trimmed(line.substr(equals + 1));
  }
  return addresses;
}

std::optional<std::string> parse_hccn_tool(std::string_view output) {
  const std::string_view line = first_line(output);
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  return std::string(trimmed(line.substr(colon + 1)));
}

RankTable host_table(const std::string& server_id, DeviceRange range,
                     const std::vector<std::string>& visible, const DeviceAddresses& addresses) {
  check_server_id(server_id);
  const int count = range.last - range.first;
  if (static_cast<int>(visible.size()) < count) {
    refuse_table(
        fmt::format("{} visible device(s) are too few for {} devices", visible.size(), count));
  }
  RankTable table;
  table.server_count = 1;
  RankTableServer server;
  server.server_id = server_id;
  for (int logical = range.first; logical < range.last; ++logical) {
    if (logical >= static_cast<int>(visible.size())) {
      refuse_table(
          fmt::format("there is no logical device {}: --visible_devices has {}, so "
                      "--device_num goes up to [0,{})",
                      logical, visible.size(), visible.size()));
    }
    const std::string& id = visible[static_cast<size_t>(logical)];
    const auto address = addresses.find(id);
    if (address == addresses.end()) {
      refuse_table(
          fmt::format("no address is known of device '{}' (logical device {}); give it by "
                      "--hccn_conf or --device_ip",
                      id, logical));
    }
    const auto number = static_cast<int>(parse_int(id, 0, kMaxDevices, "visible device"));
    server.devices.push_back({number, address->second, "", logical - range.first});
  }
  table.servers.push_back(std::move(server));
  return table;
}

std::string host_table_name(DeviceRange range, const std::string& server_id) {
  std::string ids;
  for (int id = range.first; id < range.last; ++id) ids += std::to_string(id);
  return fmt::format("hccl_{}p_{}_{}.json", range.last - range.first, ids, server_id);
}

RankTable plain_table(const std::string& hosts) {
  RankTable table;
  int rank = 0;
  for (const std::string& entry : split(hosts, ',')) {
    const size_t colon = entry.find(':') == entry.rfind(':') ? entry.find(':') : std::string::npos;
    const std::string count = colon == std::string::npos ? "1" : entry.substr(colon + 1);
    RankTableServer server;
    server.server_id = entry.substr(0, colon);
    check_server_id(server.server_id);
    const auto devices = parse_int(count, 1, kMaxDevices, "processes of host '" + entry + "'");
    for (int i = 0; i < devices; ++i) server.devices.push_back({i, "", "", rank++});
    for (const RankTableServer& other : table.servers) {
      if (other.server_id == server.server_id)
        refuse_table(fmt::format("host '{}' is there twice", server.server_id));
    }
    table.servers.push_back(std::move(server));
  }
  table.server_count = static_cast<int>(table.servers.size());
  return table;
}

std::string merged_table_name(int servers, int ranks) {
  return fmt::format("hccl_{}s_{}p.json", servers, ranks);
}

std::string python_list(const std::vector<std::string>& texts) {
  std::vector<std::string> shown;
  for (const std::string& text : texts) shown.push_back(in_python_quotes(text));
  return fmt::format("[{}]", fmt::join(shown, ", "));
}

MergedTable merge_rank_tables(const std::vector<RankTableText>& files) {
  auto servers = nlohmann::ordered_json::array();
  int rank = 0;
  for (const RankTableText& file : files) {
    refuse_errors(file.name, read_rank_table(file.json).faults);
    std::string ignored;
    auto document = rank_table::parse_document(file.json, &ignored);
    for (auto& server : document["server_list"]) {
      for (auto& device : server["device"]) device["rank_id"] = std::to_string(rank++);
      servers.push_back(std::move(server));
    }
  }
  nlohmann::ordered_json merged = {{"version", "1.0"},
                                   {"server_count", std::to_string(servers.size())},
                                   {"server_list", std::move(servers)},
                                   {"status", "completed"}};
  MergedTable result;
  result.json = rank_table::dump_document(merged);
  result.table = read_rank_table(result.json).table;
  refuse_errors("the merged table", check_ranks(result.table));
  return result;
}

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

}  // namespace lockstep::inline internal
