// MindSpore's dynamic cluster (msrun, or a loop that sets MS_*). Source:
// tutorials/source_en/parallel/dynamic_cluster.md of MindSpore's documentation. Its scheduler, a
// process more, has nothing to do here but to stay: rank 0 serves the store at its address.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "lockstep/error.h"
#include "lockstep/world/detect/source.h"

namespace lockstep {
namespace {

bool is_number(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

bool is_scheduler(const Reader& read) {
  const auto role = read.need("MS_ROLE", "MS_WORKER_NUM is");
  if (role != "MS_SCHED" && role != "MS_WORKER") {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("MS_ROLE={}: it is MS_WORKER for a rank, or MS_SCHED", role));
  }
  return role == "MS_SCHED";
}

void take_scheduler_place(const Reader& read, const std::string& because, Identity* id) {
  id->master.host = read.need("MS_SCHED_HOST", because);
  id->master.port = read.need_number("MS_SCHED_PORT", because, 1, 65535);
}

}  // namespace

std::optional<Identity> read_mindspore(const Reader& read) {
  Identity id;
  id.scheduler = is_scheduler(read);
  id.job_id = "mindspore";
  const std::string because = id.scheduler ? "MS_ROLE=MS_SCHED" : "MS_ROLE=MS_WORKER";
  id.size = read.need_number("MS_WORKER_NUM", because, 1, kMaxRanks);
  if (id.scheduler) {
    take_scheduler_place(read, because, &id);
    return id;
  }
  const auto node_id = read.text("MS_NODE_ID").value_or("");
  const auto because_rank =
      fmt::format("MS_NODE_ID={} is no number, and nobody hands out ranks here", node_id);
  id.rank = is_number(node_id) ? read.maybe_number("MS_NODE_ID", 0, kMaxRanks).value_or(0)
                               : read.need_number("RANK_ID", because_rank, 0, kMaxRanks);
  check_less("MS_NODE_ID", id.rank, "MS_WORKER_NUM", id.size);
  id.device = read.maybe_number("DEVICE_ID", 0, 1 << 16);
  if (id.size > 1) {
    id.local_rank = id.local_size = id.node_rank = id.num_nodes = kNotTold;
    take_scheduler_place(read, because, &id);
  }
  return id;
}

}  // namespace lockstep
