// MindSpore's dynamic cluster (msrun, or a loop that sets MS_*). Source:
// tutorials/source_en/parallel/dynamic_cluster.md of MindSpore's documentation. Its scheduler, a
// process more, has nothing to do here: rank 0 serves the store at the scheduler's address.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "lockstep/base/error.h"
#include "lockstep/launch/source/source.h"

namespace lockstep {
namespace {

bool is_number(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

void need_worker(const Reader& read) {
  const auto role = read.need("MS_ROLE", "MS_WORKER_NUM is");
  if (role == "MS_WORKER") return;
  throw Error(ErrorCode::kInvalidArgument,
              role == "MS_SCHED"
                  ? "MS_ROLE=MS_SCHED: Lockstep needs no scheduler, rank 0 serves the store at "
                    "MS_SCHED_HOST:MS_SCHED_PORT; start the workers only"
                  : fmt::format("MS_ROLE={}: only MS_WORKER is a rank here", role));
}

}  // namespace

std::optional<Identity> read_mindspore(const Reader& read) {
  need_worker(read);
  const std::string because = "MS_ROLE=MS_WORKER";
  Identity id;
  id.size = read.need_number("MS_WORKER_NUM", because, 1, kMaxRanks);
  const auto node_id = read.text("MS_NODE_ID").value_or("");
  const auto because_rank =
      fmt::format("MS_NODE_ID={} is no number, and nobody hands out ranks here", node_id);
  id.rank = is_number(node_id) ? read.maybe_number("MS_NODE_ID", 0, kMaxRanks).value_or(0)
                               : read.need_number("RANK_ID", because_rank, 0, kMaxRanks);
  check_less("MS_NODE_ID", id.rank, "MS_WORKER_NUM", id.size);
  id.device = read.maybe_number("DEVICE_ID", 0, 1 << 16);
  if (id.size > 1) {
    id.local_rank = id.local_size = id.node_rank = id.num_nodes = kNotTold;
    id.master.host = read.need("MS_SCHED_HOST", because);
    id.master.port = read.need_number("MS_SCHED_PORT", because, 1, 65535);
  }
  id.job_id = "mindspore";
  return id;
}

}  // namespace lockstep
