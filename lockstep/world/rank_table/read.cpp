// From JSON to a RankTable, with a fault for every invalid value.

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lockstep/base/file.h"
#include "lockstep/base/number.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/world/rank_table/document.h"
#include "lockstep/world/rank_table/rank_table.h"

namespace lockstep::inline internal {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxFaults = 1000;
constexpr int kMaxNumber = 9'999'999;
constexpr size_t kMaxServerId = 63;
constexpr std::array kNames = {"version",   "server_count", "server_list", "status",
                               "server_id", "device",       "host_nic_ip", "device_id",
                               "device_ip", "device_port",  "rank_id"};

/// A whole number in a rank table's notation: digits, no sign, no leading zeros.
std::optional<int> plain_number(std::string_view text) {
  const auto value = as_number<int>(text);
  const bool plain = value && text[0] != '-' && (text.size() == 1 || text[0] != '0');
  return plain && *value <= kMaxNumber ? value : std::nullopt;
}

std::string in_quotes(std::string_view text) {
  constexpr size_t kShown = 60;
  return fmt::format("\"{}\"", shortened(text, kShown));
}

/// "an array", "a number".
std::string a_type(const Json& json) {
  const std::string name = json.type_name();
  return (name == "array" || name == "object" ? "an " : "a ") + name;
}

bool is_address(const std::string& text) {
  in6_addr ignored{};
  return ::inet_pton(AF_INET, text.c_str(), &ignored) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), &ignored) == 1;
}

bool is_printable(std::string_view text) {
  for (const char letter : text) {
    if (letter <= ' ' || letter == 0x7f) return false;
  }
  return true;
}

/// One object of the table and where it is.
class TableObject {
 public:
  TableObject(const Json& json, std::string path, std::vector<RankTableFault>* faults)
      : json_(json), path_(std::move(path)), faults_(faults) {}

  void fault(const std::string& name, std::string text, bool warning = false) const {
    if (faults_->size() >= kMaxFaults) return;
    faults_->push_back({warning, name.empty() ? path_ : path_ + "." + name, std::move(text)});
  }

  const Json* find(const std::string& name) const {
    const auto found = json_.find(name);
    return found == json_.end() ? nullptr : &*found;
  }

  /// The field, or null and a fault.
  const Json* need(const std::string& name) const {
    const Json* value = find(name);
    if (value != nullptr) return value;
    std::vector<std::string> names;
    for (const auto& [other, ignored] : json_.items()) {
      if (std::find(kNames.begin(), kNames.end(), other) == kNames.end()) names.push_back(other);
    }
    fault(name, "missing" + did_you_mean(name, names));
    return nullptr;
  }

  /// The field's text, or "" and a fault. A missing one is no fault if it is `optional`.
  std::string text(const std::string& name, bool optional = false) const {
    const Json* value = optional ? find(name) : need(name);
    if (value == nullptr) return "";
    if (value->is_string()) return value->get<std::string>();
    fault(name, fmt::format("{}, must be a string{}", a_type(*value),
                            value->is_number() ? " (write \"" + value->dump() + "\")" : ""));
    return "";
  }

  /// The field's number, written as a string, or nothing and a fault.
  std::optional<int> number(const std::string& name) const {
    const size_t before = faults_->size();
    const std::string digits = text(name);
    const auto value = plain_number(digits);
    if (!value && faults_->size() == before) {
      fault(name, fmt::format("{} is no whole number from 0 to {}", in_quotes(digits), kMaxNumber));
    }
    return value;
  }

  /// Calls `take(element, index path)` for each object of the field, which must be a non-empty
  /// array.
  template <class Take>
  void each(const std::string& name, const char* what, const Take& take) const {
    const Json* list = need(name);
    if (list == nullptr) return;
    if (!list->is_array())
      return fault(name, fmt::format("{}, must be an array of {}s", a_type(*list), what));
    if (list->empty()) fault(name, fmt::format("empty: there must be a {}", what));
    for (size_t i = 0; i < list->size(); ++i) {
      TableObject element((*list)[i], fmt::format("{}.{}[{}]", path_, name, i), faults_);
      if ((*list)[i].is_object()) {
        take(element);
      } else {
        element.fault("", fmt::format("{}, must be an object", a_type((*list)[i])));
      }
    }
  }

 private:
  const Json& json_;
  std::string path_;
  std::vector<RankTableFault>* faults_;
};

/// A rank id, which merge_hccl.py writes as a number.
std::optional<int> read_rank_id(const TableObject& device) {
  const Json* value = device.find("rank_id");
  if (value == nullptr || !value->is_number_unsigned()) return device.number("rank_id");
  const auto rank = plain_number(value->dump());
  if (!rank) {
    device.fault("rank_id", fmt::format("{} is above {}", value->dump(), kMaxNumber));
  } else {
    device.fault("rank_id",
                 fmt::format("a number, as merge_hccl.py writes it; the format has "
                             "strings (\"{}\")",
                             *rank),
                 true);
  }
  return rank;
}

RankTableDevice read_device(const TableObject& json) {
  RankTableDevice device;
  device.device_id = json.number("device_id").value_or(-1);
  device.rank = read_rank_id(json).value_or(-1);
  device.device_ip = json.text("device_ip", true);
  if (!device.device_ip.empty() && !is_address(device.device_ip)) {
    json.fault("device_ip", in_quotes(device.device_ip) + " is no IPv4 or IPv6 address");
  } else if (const Json* value = json.find("device_ip");
             value != nullptr && value->is_string() && device.device_ip.empty()) {
    json.fault("device_ip", "empty: leave it out or write an address");
  }
  device.device_port = json.text("device_port", true);
  if (!device.device_port.empty()) {
    const auto port = plain_number(device.device_port);
    if (!port || *port < 1 || *port > 65535) {
      json.fault("device_port", in_quotes(device.device_port) + " is no port from 1 to 65535");
    }
  }
  return device;
}

RankTableServer read_server(const TableObject& json) {
  RankTableServer server;
  server.server_id = json.text("server_id");
  if (const Json* value = json.find("server_id"); value != nullptr && value->is_string()) {
    if (server.server_id.empty() || server.server_id.size() > kMaxServerId) {
      json.fault("server_id",
                 fmt::format("{} has {} characters; 1 to {} are allowed",
                             in_quotes(server.server_id), server.server_id.size(), kMaxServerId));
    } else if (!is_printable(server.server_id)) {
      json.fault("server_id", "has a blank or a control character in it");
    }
  }
  server.host_nic_ip = json.text("host_nic_ip", true);
  json.each("device", "device",
            [&](const TableObject& device) { server.devices.push_back(read_device(device)); });
  return server;
}

}  // namespace

std::string to_string(const RankTableFault& fault) {
  return fmt::format("{}: {}{}", fault.path, fault.warning ? "warning: " : "", fault.text);
}

bool any_error(const std::vector<RankTableFault>& faults) {
  for (const RankTableFault& fault : faults) {
    if (!fault.warning) return true;
  }
  return false;
}

RankTableReading read_rank_table(std::string_view json) {
  RankTableReading reading;
  std::string problem;
  const Json document = rank_table::parse_document(json, &problem);
  if (!problem.empty()) {
    reading.faults.push_back({false, "$", problem});
    return reading;
  }
  if (!document.is_object()) {
    reading.faults.push_back({false, "$", fmt::format("{}, must be an object", a_type(document))});
    return reading;
  }
  const TableObject top(document, "$", &reading.faults);
  RankTable& table = reading.table;
  table.version = top.text("version");
  if (!table.version.empty() && table.version != "1.0") {
    top.fault("version", in_quotes(table.version) + " is not known here; read as \"1.0\"", true);
  }
  table.server_count = top.number("server_count").value_or(-1);
  table.status = top.text("status");
  top.each("server_list", "server",
           [&](const TableObject& server) { table.servers.push_back(read_server(server)); });
  return reading;
}

RankTable load_rank_table(const std::filesystem::path& path) {
  RankTableReading reading = read_rank_table(read_file(path, kMaxRankTableBytes));
  auto& faults = reading.faults;
  if (!any_error(faults)) {
    const auto more = check_ranks(reading.table);
    faults.insert(faults.end(), more.begin(), more.end());
  }
  std::erase_if(faults, [](const RankTableFault& fault) { return fault.warning; });
  if (faults.empty()) return std::move(reading.table);
  throw Error(
      ErrorCode::kCorrupt,
      fmt::format("rank table {}: {}{} (lockstep ranktable --check lists all)", path.string(),
                  to_string(faults[0]),
                  faults.size() > 1 ? fmt::format("; and {} more", faults.size() - 1) : ""));
}

}  // namespace lockstep::inline internal
