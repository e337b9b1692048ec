#pragma once
// Rank tables: the JSON files in which Ascend jobs assign ranks to devices of hosts
// (RANK_TABLE_FILE, version 1.0). Tables of CPU and GPU hosts are the same without device_ip.
//
//   {"version": "1.0", "server_count": "1",
//    "server_list": [{"server_id": "10.0.0.1",
//                     "device": [{"device_id": "0", "device_ip": "192.1.27.6", "rank_id": "0"}],
//                     "host_nic_ip": "reserve"}],
//    "status": "completed"}
//
// A file is checked in three stages: its form (read_rank_table), its ranks (check_ranks), and the
// rules of HCCL and its hardware (check.h). For load_rank_table() the first two suffice; `lockstep
// ranktable --check` reports all three.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::inline internal {

struct RankTableDevice {
  int device_id = 0;
  std::string device_ip;    ///< Empty: none, as in tables of CPU and GPU hosts.
  std::string device_port;  ///< Empty: not given.
  int rank = 0;
};

struct RankTableServer {
  std::string server_id;
  std::vector<RankTableDevice> devices;  ///< Local rank = place in this list.
  std::string host_nic_ip = "reserve";   ///< Empty: not given.
};

struct RankTable {
  std::string version = "1.0";
  int server_count = 0;
  std::vector<RankTableServer> servers;  ///< Node rank = place in this list.
  std::string status = "completed";
};

/// One fault of a table.
struct RankTableFault {
  bool warning = false;  ///< The table can be used all the same.
  std::string path;      ///< "$.server_list[0].device[2].rank_id"; "$" is the whole file.
  std::string text;      ///< The value found, and the allowed ones.
};

std::string to_string(const RankTableFault& fault);
/// Whether one of them is more than a warning.
bool any_error(const std::vector<RankTableFault>& faults);

struct RankTableReading {
  RankTable table;  ///< The readable part; other numbers are -1, texts empty.
  std::vector<RankTableFault> faults;
};

constexpr int64_t kMaxRankTableBytes = int64_t{64} << 20;  ///< 10,000 hosts of 8 fit in a fifth.

/// Reads a table's form. It must be JSON of at most kMaxRankTableBytes, with each field present,
/// of its type and with a sensible value. No object may repeat a name. All scalars are strings;
/// a rank_id may be a number, as written by merge_hccl.py. Unknown fields are skipped. Never
/// throws. Cost: one pass; memory about ten times the text.
RankTableReading read_rank_table(std::string_view json);

/// Whether this table distinguishes all ranks: status completed, correct counts, unique servers and
/// device ids, rank ids 0 to N-1 once each. Skips values that read_rank_table() could not read.
std::vector<RankTableFault> check_ranks(const RankTable& table);

/// The table in `path`. Errors: kNotFound, kIo; kCorrupt with file, JSON path of the first fault in
/// form or ranks, and the number of further faults.
RankTable load_rank_table(const std::filesystem::path& path);

/// Number of devices of all servers.
int num_ranks(const RankTable& table);
/// Whether a device has its own address, so that the rules of HCCL apply.
bool is_for_ascend(const RankTable& table);

/// A rank's place in the job.
struct RankTablePlace {
  int node_rank = 0;   ///< Index of its server.
  int local_rank = 0;  ///< Index in its server's list; not its device_id.
};
/// Nothing if the table does not have the rank.
std::optional<RankTablePlace> find_rank(const RankTable& table, int rank);

/// The file in hccl_tools.py's format, to the byte: its order of fields, four blanks a level, ASCII
/// only, no newline at the end. Errors: kInvalidArgument if a text is not UTF-8.
std::string format_rank_table(const RankTable& table);

}  // namespace lockstep::inline internal
