#pragma once
// Rank tables: the JSON files in which Ascend jobs write down which device of which host has which
// rank (RANK_TABLE_FILE, version 1.0). Tables of CPU and GPU hosts are the same without device_ip.
//
//   {"version": "1.0", "server_count": "1",
//    "server_list": [{"server_id": "10.0.0.1",
//                     "device": [{"device_id": "0", "device_ip": "192.1.27.6", "rank_id": "0"}],
//                     "host_nic_ip": "reserve"}],
//    "status": "completed"}
//
// A file passes three stages: its form (read_rank_table), whether it tells every rank apart
// (check_ranks), and the rules of HCCL and its hardware (check.h). load_rank_table() wants the
// first two; `lockstep ranktable --check` reports all three.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

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

/// One thing that is wrong with a table.
struct RankTableFault {
  bool warning = false;  ///< Worth a look, but the table can be used.
  std::string path;      ///< "$.server_list[0].device[2].rank_id"; "$" is the whole file.
  std::string text;      ///< What is there and what is allowed.
};

std::string to_string(const RankTableFault& fault);
/// One of them is more than a warning.
bool any_error(const std::vector<RankTableFault>& faults);

struct RankTableReading {
  RankTable table;  ///< What could be read; numbers that could not are -1, texts empty.
  std::vector<RankTableFault> faults;
};

constexpr int64_t kMaxRankTableBytes = int64_t{64} << 20;  ///< 10,000 hosts of 8 fit in a fifth.

/// Reads a table's form: JSON, at most kMaxRankTableBytes, each field there, of its type and with a
/// sensible value, no name twice in an object. All scalars are strings; a rank_id may be a number,
/// which merge_hccl.py writes. Fields that are not known here are passed over. Never throws.
/// Cost: one pass; memory about ten times the text.
RankTableReading read_rank_table(std::string_view json);

/// Whether ranks can be told apart by this table: completed, counts true, servers and device ids
/// unique, rank ids 0 to N-1 once each. What read_rank_table() could not read is passed over.
std::vector<RankTableFault> check_ranks(const RankTable& table);

/// The table in `path`. Errors: kNotFound, kIo, kCorrupt with file and JSON path of the first fault
/// in form or ranks, and how many more there are.
RankTable load_rank_table(const std::filesystem::path& path);

/// Number of devices of all servers.
int num_ranks(const RankTable& table);
/// A device has an address of its own, so the rules of HCCL hold.
bool is_for_ascend(const RankTable& table);

/// Where a rank is, as a job's ranks count.
struct RankTablePlace {
  int node_rank = 0;   ///< Index of its server.
  int local_rank = 0;  ///< Index in its server's list; not its device_id.
};
/// Nothing when the table does not have the rank.
std::optional<RankTablePlace> find_rank(const RankTable& table, int rank);

/// The file as hccl_tools.py would write it, to the byte: fields in that order, four blanks a
/// level, nothing but ASCII, no newline at the end. Errors: kInvalidArgument when a text is not
/// UTF-8.
std::string format_rank_table(const RankTable& table);

}  // namespace lockstep
