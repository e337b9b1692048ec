#include "lockstep/launch/cli/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "lockstep/base/addresses.h"
#include "lockstep/base/counted.h"
#include "lockstep/base/file.h"
#include "lockstep/base/help_text.h"
#include "lockstep/base/host_name.h"
#include "lockstep/base/options.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/launch/rank_table/check.h"
#include "lockstep/launch/rank_table/hccl_tools.h"

namespace lockstep::inline internal {
namespace {

struct TableRequest {
  std::string device_num = "[0,8)";
  std::string visible_devices = "0,1,2,3,4,5,6,7";
  std::string server_ip, device_ip, hccn_conf, hosts;
  bool merge = false, check = false, help = false;
  bool for_host = false;  ///< An option of this host's table is there.
  std::vector<std::string> files;
};

[[noreturn]] void refuse_request(const std::string& text) {
  throw Error(ErrorCode::kInvalidArgument, "lockstep ranktable: " + text);
}

/// Of an option that is for this host's table.
template <auto kMember>
constexpr auto set_for_host =
    [](TableRequest& request, const std::string& value, const std::string&) {
      request.*kMember = value;
      request.for_host = true;
    };

OptionGroup<TableRequest> table_options() {
  using R = TableRequest;
  constexpr auto kValue = OptionKind::kValue;
  constexpr auto kFlag = OptionKind::kFlag;
  return {"",
          {{"device_num", 0, kValue, "\"[0,8)\"",
            "logical devices, from the first to before the last: within 0-3 or 4-7, or all",
            set_for_host<&R::device_num>},
           {"visible_devices", 0, kValue, "IDS", "hardware ids of the logical devices (default {})",
            set_for_host<&R::visible_devices>, shows<&R::visible_devices>},
           {"server_ip", 0, kValue, "IP", "this host's address (default: that of its name)",
            set_for_host<&R::server_ip>},
           {"device_ip", 0, kValue, "IPS", "the devices' addresses, in the order of --device_num",
            set_for_host<&R::device_ip>},
           {"hccn_conf", 0, kValue, "FILE",
            "or a file with them, address_N=IP each; without either hccn_tool is asked, and then "
            "/etc/hccn.conf read",
            set_for_host<&R::hccn_conf>},
           {"hosts", 0, kValue, "H1:N1,H2:N2...", "", set_text<&R::hosts>},
           {"merge", 0, kFlag, "", "", set_flag<&R::merge>},
           {"check", 0, kFlag, "", "", set_flag<&R::check>},
           help_option<R>()}};
}

HelpPage table_help() {
  return {
      {{"lockstep ranktable [OPTIONS]", "table of this host's Ascend devices"},
       {"lockstep ranktable --merge FILE...", "one table of those of several hosts"},
       {"lockstep ranktable --hosts H1:N1,H2:N2...", "table of CPU or GPU hosts, N processes each"},
       {"lockstep ranktable --check FILE...", "every fault of a table, one a line"}},
      "Writes hccl_*.json into the current folder, as hccl_tools.py and merge_hccl.py do.",
      {help_group(table_options())},
      "--check ends with 2 when there is a fault; limits of the hardware are warnings."};
}

TableRequest parse_request(const std::vector<std::string>& words) {
  TableRequest request;
  request.files = read_request(words, table_options().options, "lockstep ranktable", request);
  if (request.help) return request;
  const bool wants_files = request.merge || request.check;
  if (request.merge + request.check + !request.hosts.empty() + request.for_host > 1)
    refuse_request(
        "--merge, --check, --hosts and the options of this host's table exclude each other");
  if (wants_files && request.files.empty()) refuse_request("which files?");
  if (!wants_files && !request.files.empty())
    refuse_request(
        fmt::format("'{}' is no option; files go with --merge or --check", request.files[0]));
  if (!request.device_ip.empty() && !request.hccn_conf.empty())
    refuse_request("--device_ip and --hccn_conf exclude each other");
  return request;
}

/// The first IPv4 address of this host's name.
std::string own_address() {
  const std::string name = host_name();
  std::string problem;
  const AddressList list = look_up(name, 0, &problem, 0, AF_INET);
  if (!list)
    refuse_request(fmt::format("this host's name '{}' has no address; give --server_ip", name));
  return in_figures(list->ai_addr);
}

void warn_of_loopback(const std::string& server_id) {
  if (!server_id.starts_with("127.")) return;
  std::fprintf(stderr,
               "lockstep: warning: this host's name has the address %s, which no other host "
               "reaches; give --server_ip for a table of several hosts\n",
               server_id.c_str());
}

DeviceAddresses given_addresses(const TableRequest& request, DeviceRange range,
                                const std::vector<std::string>& visible) {
  const auto ips = split(request.device_ip, ',');
  const auto count = static_cast<size_t>(range.last - range.first);
  if (ips.size() != count) {
    refuse_request(
        fmt::format("--device_ip has {} address(es) for {} device(s)", ips.size(), count));
  }
  DeviceAddresses addresses;
  for (size_t i = 0; i < count; ++i) {
    const size_t logical = static_cast<size_t>(range.first) + i;
    if (logical < visible.size()) addresses[visible[logical]] = ips[i];
  }
  return addresses;
}

/// `notes`: the tool's messages meanwhile.
DeviceAddresses find_addresses(const TableRequest& request, DeviceRange range,
                               const std::vector<std::string>& visible, std::string* notes) {
  if (!request.device_ip.empty()) return given_addresses(request, range, visible);
  if (!request.hccn_conf.empty()) return read_hccn_conf(request.hccn_conf);
  if (range.first == range.last) return {};
  if (const auto told = ask_hccn_tool(range)) return *told;
  *notes = fmt::format("Failed to call hccn_tool, try to read {} instead\n", kHccnConf);
  try {
    return read_hccn_conf(kHccnConf);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kCorrupt) throw;
    throw Error(ErrorCode::kNotFound,
                fmt::format("no addresses of devices: hccn_tool gives none, and {}; give "
                            "--hccn_conf or --device_ip, or, for processes without devices, "
                            "--hosts 127.0.0.1:{}",
                            error.what(), range.last - range.first));
  }
}

void save(const std::string& name, const std::string& json) {
  const auto path = std::filesystem::current_path() / name;
  write_file_atomically(path, json);
  std::printf("Completed: hccl file was save in : %s\n", path.c_str());
}

/// Prints the faults of a new table to standard error; the file is written all the same.
void warn_of_faults(const RankTable& table) {
  std::fflush(stdout);
  for (const RankTableFault& fault : check_hccl_rules(table))
    std::fprintf(stderr, "lockstep: warning: %s: %s\n", fault.path.c_str(), fault.text.c_str());
}

int make_host_table(const TableRequest& request) {
  const auto visible = split(request.visible_devices, ',');
  const DeviceRange range = parse_device_range(request.device_num);
  const std::string server_id = request.server_ip.empty() ? own_address() : request.server_ip;
  std::string notes;
  const RankTable table =
      host_table(server_id, range, visible, find_addresses(request, range, visible, &notes));
  // The tool's lines, after all checks that can fail.
  std::printf("start lockstep ranktable\nvisible_devices:%s\nserver_id:%s\n",
              python_list(visible).c_str(), server_id.c_str());
  std::fflush(stdout);
  if (request.server_ip.empty()) warn_of_loopback(server_id);
  std::vector<int> logical;
  for (int id = range.first; id < range.last; ++id) logical.push_back(id);
  std::printf("device_num_list: [%s]\n%s", fmt::format("{}", fmt::join(logical, ", ")).c_str(),
              notes.c_str());
  for (const RankTableDevice& device : table.servers[0].devices) {
    std::printf("rank_id:%d, device_id:%d, device_ip:%s\n", device.rank, device.device_id,
                device.device_ip.c_str());
  }
  warn_of_faults(table);
  save(host_table_name(range, server_id), format_rank_table(table));
  return 0;
}

int merge_files(const TableRequest& request) {
  std::vector<RankTableText> texts;
  for (const std::string& file : request.files)
    texts.push_back({file, read_file(file, kMaxRankTableBytes)});
  const MergedTable merged = merge_rank_tables(texts);
  std::printf("%s\n", python_list(request.files).c_str());
  warn_of_faults(merged.table);
  save(merged_table_name(merged.table.server_count, num_ranks(merged.table)), merged.json);
  return 0;
}

int make_plain_table(const TableRequest& request) {
  const RankTable table = plain_table(request.hosts);
  save(merged_table_name(table.server_count, num_ranks(table)), format_rank_table(table));
  return 0;
}

std::string summary_of(const std::string& json) {
  const RankTable table = read_rank_table(json).table;
  const bool ascend = is_for_ascend(table);
  return fmt::format("{}, {}{}", counted(static_cast<int64_t>(table.servers.size()), "server"),
                     counted(num_ranks(table), "rank"),
                     ascend ? "" : ", no device_ip (for CPU or GPU hosts)");
}

int check_files(const TableRequest& request) {
  constexpr size_t kShown = 200;
  int status = 0;
  for (const std::string& file : request.files) {
    const std::string json = read_file(file, kMaxRankTableBytes);
    auto faults = check_rank_table(json);
    std::error_code ignored;
    if (std::filesystem::is_symlink(file, ignored))
      faults.push_back({true, "$", "a symbolic link, which torch_npu refuses"});
    for (size_t i = 0; i < std::min(faults.size(), kShown); ++i)
      std::printf("%s: %s\n", file.c_str(), to_string(faults[i]).c_str());
    if (faults.size() > kShown) std::printf("%s: %zu more\n", file.c_str(), faults.size() - kShown);
    if (faults.empty()) std::printf("%s: sound: %s\n", file.c_str(), summary_of(json).c_str());
    if (any_error(faults)) status = 2;
  }
  return status;
}

}  // namespace

int rank_table_command(const std::vector<std::string>& words) {
  const TableRequest request = parse_request(words);
  if (request.help) return print_help(table_help());
  if (request.check) return check_files(request);
  if (request.merge) return merge_files(request);
  if (!request.hosts.empty()) return make_plain_table(request);
  return make_host_table(request);
}

}  // namespace lockstep::inline internal
