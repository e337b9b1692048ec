// Steps of batch systems.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/world/detect/host_list.h"
#include "lockstep/world/detect/launcher_probe.h"

namespace lockstep::inline internal {

// A step of Slurm, started by srun. Source: doc/man/man1/srun.1 of Slurm. The variables of a batch
// script describe the job, not a step. The first host of the job's list need not be rank 0's, so
// only the step's own variables are used.

namespace {

/// A script of sbatch, or the shell of salloc: one process, whatever the job's size.
std::optional<Identity> alone_in_job(const Reader& read) {
  const auto tasks = read.maybe_number("SLURM_NTASKS", 1, kMaxRanks);
  if (tasks.value_or(1) > 1) {
    read.note(
        fmt::format("this Slurm job has SLURM_NTASKS={} tasks, but srun did not start this "
                    "process: it runs alone, as rank 0 of 1; write 'srun PROGRAM'",
                    *tasks));
  }
  return std::nullopt;
}

/// A shell of `srun --pty`, whatever its number of tasks: a command typed there is one process.
/// Steps started in it inherit the variable, but their tasks have no terminal.
bool is_in_shell_of_step(const Reader& read) {
  if (!read.text("SLURM_PTY_PORT")) return false;
  return read.typed_below(read.text("SLURM_TASK_PID").value_or(""));
}

std::optional<Identity> alone_in_shell(const Reader& read) {
  const auto tasks = read.maybe_number("SLURM_STEP_NUM_TASKS", 1, kMaxRanks);
  if (tasks.value_or(1) > 1) {
    read.note(
        fmt::format("this is a shell of `srun --pty` with {} tasks: the program runs alone, as "
                    "rank 0 of 1; write 'srun PROGRAM'",
                    *tasks));
  }
  return std::nullopt;
}

/// A heterogeneous step (srun A : B) has the tasks of all components.
int step_size(const Reader& read) {
  const std::string because = "SLURM_PROCID is; srun sets both";
  const int tasks = read.need_number("SLURM_STEP_NUM_TASKS", because, 1, kMaxRanks);
  if (!read.text("SLURM_HET_SIZE")) return tasks;
  return std::max(tasks, read.maybe_number("SLURM_NTASKS", 1, kMaxRanks).value_or(1));
}

/// Number of tasks on this node, or kUnknownNumber.
int tasks_here(const Reader& read, const Identity& id) {
  const auto ids = read.text("SLURM_GTIDS");
  const auto list = read.text("SLURM_STEP_TASKS_PER_NODE");
  const int counted = ids ? static_cast<int>(split(*ids, ',').size()) : kUnknownNumber;
  if (!list) return counted;
  const auto tasks = parse_tasks_per_node(*list);
  // Heterogeneous steps list the nodes of one component only.
  if (static_cast<int>(tasks.size()) != id.num_nodes) return counted;
  const int listed = tasks[static_cast<size_t>(id.node_rank)];
  if (counted != kUnknownNumber && counted != listed) {
    contradict(
        fmt::format("SLURM_GTIDS={} are {} tasks on node {}, SLURM_STEP_TASKS_PER_NODE={} "
                    "says {}",
                    *ids, counted, id.node_rank, *list, listed));
  }
  return listed;
}

/// Whether rank 0 runs on the first node of the step's list.
bool begins_at_first_host(const Reader& read) {
  const auto distribution = read.text("SLURM_DISTRIBUTION");
  if (!distribution) return true;
  const auto first = distribution->substr(0, distribution->find_first_of(":,="));
  return first == "block" || first == "cyclic" || first == "plane" || first == "*";
}

void read_nodes(const Reader& read, Identity* id) {
  const auto hosts =
      expand_host_list(read.need("SLURM_STEP_NODELIST", "SLURM_PROCID is; srun sets both"));
  const std::set<std::string> distinct(hosts.begin(), hosts.end());
  id->num_nodes = static_cast<int>(distinct.size());
  id->node_rank = read.need_number("SLURM_NODEID", "SLURM_PROCID is", 0, kMaxRanks);
  check_less("SLURM_NODEID", id->node_rank, "number of nodes in SLURM_STEP_NODELIST",
             id->num_nodes);
  id->local_size = tasks_here(read, *id);
  id->local_rank = read.need_number("SLURM_LOCALID", "SLURM_PROCID is", 0, kMaxRanks);
  id->master = read_master(read, *id, begins_at_first_host(read) ? hosts.front() : "");
  if (id->rank == 0 && id->node_rank != 0 && id->master.host == hosts.front()) {
    contradict(
        fmt::format("rank 0 runs on node {} of SLURM_STEP_NODELIST, not on the first, where "
                    "the others look for it: set MASTER_ADDR to rank 0's host",
                    id->node_rank));
  }
}

}  // namespace

std::optional<Identity> read_slurm(const Reader& read) {
  if (!read.text("SLURM_STEP_NUM_TASKS")) return alone_in_job(read);
  if (is_in_shell_of_step(read)) return alone_in_shell(read);
  Identity id;
  id.size = step_size(read);
  id.rank = read.need_number("SLURM_PROCID", "SLURM_STEP_NUM_TASKS is", 0, kMaxRanks);
  check_less("SLURM_PROCID", id.rank, "SLURM_STEP_NUM_TASKS", id.size);
  read_nodes(read, &id);
  id.restart_count = read.maybe_number("SLURM_RESTART_COUNT", 0, 1 << 30).value_or(0);
  id.job_id = fmt::format(
      "slurm-{}.{}",
      read.first_of({"SLURM_JOB_ID_HET_GROUP_0", "SLURM_JOB_ID", "SLURM_JOBID"}).value_or("none"),
      read.first_of({"SLURM_STEP_ID", "SLURM_STEPID"}).value_or("none"));
  check_ranges(id, {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID",
                    "number of tasks on this node", "SLURM_NODEID", "number of nodes"});
  return id;
}

// IBM's jsrun in a job of LSF. The file of hosts has one line for each slot; its first line is the
// host that launched the job, on which no rank runs.

namespace {

/// Hosts of the job in order, without the one that launched it; empty if no file is named.
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
  const bool one_host = std::set<std::string>(hosts.begin(), hosts.end()).size() == 1;
  id.local_size = one_host ? id.size : kUnknownNumber;  // slots are not ranks
  id.num_nodes = one_host ? 1 : kUnknownNumber;
  id.node_rank = one_host ? 0 : kUnknownNumber;
  id.job_id = fmt::format("lsf-{}.{}", read.text("LSB_JOBID").value_or("none"),
                          read.text("JSM_NAMESPACE_ID").value_or("0"));
  id.master = read_master(read, id, hosts.empty() ? "" : hosts.front());
  check_ranges(id, {"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_RANK",
                    "number of local ranks", "node", "number of nodes"});
  return id;
}

}  // namespace lockstep::inline internal
