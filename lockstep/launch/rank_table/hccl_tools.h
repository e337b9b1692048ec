#pragma once
// The rules of MindSpore's hccl_tools.py and merge_hccl.py for rank tables, as pure functions, and
// the addresses of this host's Ascend devices.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/world/rank_table/rank_table.h"

namespace lockstep::inline internal {

/// Logical devices [first, last) of a host.
struct DeviceRange {
  int first = 0;
  int last = 8;
};

/// "[0,8)": reads one digit after the first character and one after the third, as the tool does;
/// the brackets are not checked. Errors: kInvalidArgument, in the tool's words: outside 0-8, first
/// above last, or across the groups 0-3 and 4-7 without being all eight.
DeviceRange parse_device_range(const std::string& text);

/// Device addresses by device id.
using DeviceAddresses = std::map<std::string, std::string>;

/// The `address_N=IP` lines of a hccn.conf. Other lines are skipped; the last line for an N counts.
/// Errors: kCorrupt naming the line that has no or two '='.
DeviceAddresses parse_hccn_conf(std::string_view text, const std::string& name);

/// The address in the output of `hccn_tool -i N -ip -g` ("ipaddr:192.1.27.6" in its first line);
/// nothing if there is none.
std::optional<std::string> parse_hccn_tool(std::string_view output);

/// The table of one host. Logical device i is device visible[i], with that device's address.
/// Errors: kInvalidArgument: too few visible devices, one that is no number, or one without an
/// address.
RankTable host_table(const std::string& server_id, DeviceRange range,
                     const std::vector<std::string>& visible, const DeviceAddresses& addresses);

/// hccl_2p_01_10.0.0.1.json
std::string host_table_name(DeviceRange range, const std::string& server_id);

/// The table of hosts without device addresses. "h1:4,h2:4": devices 0-3 of each, ranks in that
/// order; ":1" may be left out. Errors: kInvalidArgument.
RankTable plain_table(const std::string& hosts);

/// hccl_2s_8p.json
std::string merged_table_name(int servers, int ranks);

struct RankTableText {
  std::string name;
  std::string json;
};

struct MergedTable {
  RankTable table;
  std::string json;
};

/// Servers of all files in their order, with new rank numbers; other members of a server or device
/// are kept. Rank ids are strings, as the format requires (merge_hccl.py writes numbers). Errors:
/// kCorrupt naming file and JSON path: a file has a wrong form, or two files have the same server.
MergedTable merge_rank_tables(const std::vector<RankTableText>& files);

/// "['0', '1']", as Python prints a list of texts.
std::string python_list(const std::vector<std::string>& texts);

constexpr const char* kHccnConf = "/etc/hccn.conf";

/// hccn_tool's addresses of the devices in `range`. Nothing if the tool is not in PATH, or one of
/// its answers (10 s each) has no address.
std::optional<DeviceAddresses> ask_hccn_tool(DeviceRange range);

/// The addresses in a hccn.conf. Errors: kNotFound, kIo, kCorrupt.
DeviceAddresses read_hccn_conf(const std::string& path);

}  // namespace lockstep::inline internal
