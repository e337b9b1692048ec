// Ascend: loops of its guides, and MindSpore.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>

#include "lockstep/base/auth.h"
#include "lockstep/base/number.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/world/detect/launcher_probe.h"
#include "lockstep/world/rank_table/rank_table.h"

namespace lockstep::inline internal {

// The loops of the Ascend guides: RANK_ID, RANK_SIZE, DEVICE_ID and a rank table. Source:
// tutorials/source_en/parallel/rank_table.md of MindSpore's documentation. DEVICE_NUM is not the
// local world size: it counts all of a host's devices, even if the table has only half of them.

namespace {

RankTable read_table(const Reader& read, const std::string& path) {
  auto reading = read_rank_table(read.file(path));
  if (!any_error(reading.faults)) reading.faults = check_ranks(reading.table);
  for (const RankTableFault& fault : reading.faults) {
    if (!fault.warning) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("RANK_TABLE_FILE={}: {} (lockstep ranktable --check lists all)", path,
                              to_string(fault)));
    }
  }
  return reading.table;
}

/// Two jobs with one table could not share its devices, so its content names the job.
std::string table_name(const Reader& read, const std::string& path) {
  const Digest digest = hmac_sha256("lockstep rank table", read.file(path));
  return "ranktable-" + hex_digits(std::span(digest).first(8));
}

void take_table(const Reader& read, const std::string& path, Identity* id) {
  const RankTable table = read_table(read, path);
  if (num_ranks(table) != id->size) {
    contradict(fmt::format("RANK_SIZE={}, but RANK_TABLE_FILE={} has {} ranks", id->size, path,
                           num_ranks(table)));
  }
  const auto place = find_rank(table, id->rank);
  if (!place) contradict(fmt::format("RANK_TABLE_FILE={} has no rank {}", path, id->rank));
  const auto& server = table.servers[static_cast<size_t>(place->node_rank)];
  const int device = server.devices[static_cast<size_t>(place->local_rank)].device_id;
  if (id->device && *id->device != device) {
    contradict(fmt::format("DEVICE_ID={}, but RANK_TABLE_FILE={} gives rank {} device {}",
                           *id->device, path, id->rank, device));
  }
  id->device = device;
  id->local_rank = place->local_rank;
  id->local_size = static_cast<int>(server.devices.size());
  id->node_rank = place->node_rank;
  id->num_nodes = static_cast<int>(table.servers.size());
  const auto first = find_rank(table, 0);
  id->master =
      read_master(read, *id, table.servers[static_cast<size_t>(first->node_rank)].server_id);
  id->job_id = table_name(read, path);
}

}  // namespace

std::optional<Identity> read_ascend(const Reader& read) {
  const auto path = read.text("RANK_TABLE_FILE");
  Identity id;
  id.rank =
      read.need_number("RANK_ID", read.which_are({"RANK_SIZE", "RANK_TABLE_FILE"}), 0, kMaxRanks);
  const auto size = read.maybe_number("RANK_SIZE", 1, kMaxRanks);
  id.size = size ? *size : path ? num_ranks(read_table(read, *path)) : 0;
  if (id.size == 0) read.need("RANK_SIZE", "RANK_ID is, and no RANK_TABLE_FILE");
  check_less("RANK_ID", id.rank, "RANK_SIZE", id.size);
  id.device = read.maybe_number("DEVICE_ID", 0, 1 << 16);
  if (path) {
    take_table(read, *path, &id);
    return id;
  }
  if (id.size > 1) id.local_rank = id.local_size = id.node_rank = id.num_nodes = kUnknownNumber;
  id.job_id = "ascend";
  id.master = read_master(read, id);
  if (id.size > 1 && id.master.port == 0) id.master = {};  // nothing tells this job from another
  return id;
}

// MindSpore's dynamic cluster (msrun, or a loop that sets MS_*). Source:
// tutorials/source_en/parallel/dynamic_cluster.md of MindSpore's documentation. Its scheduler, an
// additional process, only waits here: rank 0 serves the store at its address.

namespace {

bool is_scheduler(const Reader& read) {
  const auto role = read.need("MS_ROLE", "MS_WORKER_NUM is");
  if (role != "MS_SCHED" && role != "MS_WORKER") {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("MS_ROLE={}: it is MS_WORKER for a rank, or MS_SCHED", role));
  }
  return role == "MS_SCHED";
}

/// MS_TOPO_TIMEOUT, which msrun sets from its --cluster_time_out; negative: without a limit.
std::optional<std::chrono::seconds> patience_of(const Reader& read) {
  constexpr int kLongest = 1'000'000;  // s; as good as none
  const auto seconds = read.maybe_number("MS_TOPO_TIMEOUT", -(1 << 30), 1 << 30);
  if (!seconds) return std::nullopt;
  return std::chrono::seconds(*seconds < 0 ? kLongest : std::min(*seconds, kLongest));
}

void take_scheduler_place(const Reader& read, const std::string& because, Identity* id) {
  id->master.host = read.need("MS_SCHED_HOST", because);
  id->master.port = read.need_number("MS_SCHED_PORT", because, 1, 65535);
}

}  // namespace

std::optional<Identity> read_mindspore(const Reader& read) {
  Identity id;
  id.scheduler = is_scheduler(read);
  id.patience = patience_of(read);
  id.job_id = "mindspore";
  const std::string because = id.scheduler ? "MS_ROLE=MS_SCHED" : "MS_ROLE=MS_WORKER";
  id.size = read.need_number("MS_WORKER_NUM", because, 1, kMaxRanks);
  if (id.scheduler) {
    take_scheduler_place(read, because, &id);
    return id;
  }
  const auto node_id = read.text("MS_NODE_ID").value_or("");
  const auto because_rank =
      fmt::format("MS_NODE_ID={} is no number, and no scheduler assigns ranks here", node_id);
  id.rank = all_digits(node_id) ? read.maybe_number("MS_NODE_ID", 0, kMaxRanks).value_or(0)
                                : read.need_number("RANK_ID", because_rank, 0, kMaxRanks);
  check_less("MS_NODE_ID", id.rank, "MS_WORKER_NUM", id.size);
  id.device = read.maybe_number("DEVICE_ID", 0, 1 << 16);
  if (id.size > 1) {
    id.local_rank = id.local_size = id.node_rank = id.num_nodes = kUnknownNumber;
    take_scheduler_place(read, because, &id);
  }
  return id;
}

}  // namespace lockstep::inline internal
