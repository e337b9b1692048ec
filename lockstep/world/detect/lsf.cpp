// IBM's jsrun in a job of LSF. The file of hosts has a line a slot; its first line is the host that
// launched the job, where no rank runs.
#include <fmt/format.h>

#include <set>

#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/world/detect/source.h"

namespace lockstep {
namespace {

/// Hosts of the job in order, without the one that launched it; empty where no file is named.
std::vector<std::string> job_hosts(const Reader& read) {
  const auto path = read.text("LSB_DJOB_RANKFILE");
  if (!path) return {};
  std::vector<std::string> hosts;
  for (std::string line : split(read.file(*path), '\n')) {
    while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.pop_back();
    if (!line.empty()) hosts.push_back(line);
  }
  if (hosts.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("LSB_DJOB_RANKFILE={} names no host", *path));
  }
  if (hosts.size() > 1) hosts.erase(hosts.begin());
  return hosts;
}

}  // namespace

std::optional<Identity> read_lsf(const Reader& read) {
  const std::string because = "another variable of jsrun is";
  Identity id;
  id.size = read.need_number("JSM_NAMESPACE_SIZE", because, 1, kMaxRanks);
  id.rank = read.need_number("JSM_NAMESPACE_RANK", because, 0, kMaxRanks);
  id.local_rank = read.need_number("JSM_NAMESPACE_LOCAL_RANK", because, 0, kMaxRanks);
  const auto hosts = job_hosts(read);
  const bool one_node = std::set<std::string>(hosts.begin(), hosts.end()).size() == 1;
  id.local_size = one_node ? id.size : kNotTold;  // slots are not ranks
  id.num_nodes = one_node ? 1 : kNotTold;
  id.node_rank = one_node ? 0 : kNotTold;
  id.job_id = fmt::format("lsf-{}.{}", read.text("LSB_JOBID").value_or("none"),
                          read.text("JSM_NAMESPACE_ID").value_or("0"));
  id.master = read_master(read, id, hosts.empty() ? "" : hosts.front());
  check_ranges(id, {"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_RANK",
                    "number of local ranks", "node", "number of nodes"});
  return id;
}

}  // namespace lockstep
