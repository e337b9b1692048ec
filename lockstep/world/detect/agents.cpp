// Agents that start ranks, and other launchers with the same variables.
#include <fmt/format.h>

#include <limits>

#include "lockstep/error.h"
#include "lockstep/world/detect/launcher_probe.h"

namespace lockstep::inline internal {

// Workers of `lockstep run` and spawn().

std::optional<Identity> read_agent(const Reader& read) {
  const std::string because = "LOCKSTEP_STORE is; our agent sets both";
  Identity id;
  id.master =
      parse_endpoint(read.need("LOCKSTEP_STORE", "other LOCKSTEP_ variables of our agent are"), -1);
  if (id.master.port < 1) contradict("LOCKSTEP_STORE must be HOST:PORT");
  id.size = read.need_number("LOCKSTEP_WORLD_SIZE", because, 1, kMaxRanks);
  id.rank = read.need_number("LOCKSTEP_RANK", because, 0, kMaxRanks);
  id.local_size = read.need_number("LOCKSTEP_LOCAL_WORLD_SIZE", because, 1, kMaxRanks);
  id.local_rank = read.need_number("LOCKSTEP_LOCAL_RANK", because, 0, kMaxRanks);
  id.num_nodes = read.need_number("LOCKSTEP_NUM_NODES", because, 1, kMaxRanks);
  id.node_rank = read.need_number("LOCKSTEP_NODE_RANK", because, 0, kMaxRanks);
  id.restart_count =
      read.need_number("LOCKSTEP_RESTART_COUNT", because, 0, std::numeric_limits<int>::max());
  id.job_id = read.need("LOCKSTEP_RUN_ID", because);
  check_ranges(id, {"LOCKSTEP_RANK", "LOCKSTEP_WORLD_SIZE", "LOCKSTEP_LOCAL_RANK",
                    "LOCKSTEP_LOCAL_WORLD_SIZE", "LOCKSTEP_NODE_RANK", "LOCKSTEP_NUM_NODES"});
  return id;
}

// torchrun, torch.distributed.launch, Kubeflow's pods, shell loops and scripts that set RANK.

namespace {

/// MASTER_ADDR and MASTER_PORT; a shared folder can replace them, as PyTorch's file:// does.
void read_torch_master(const Reader& read, Identity* id) {
  if (id->size == 1) return;
  if (!read.text("MASTER_ADDR") && read.text("LOCKSTEP_RENDEZVOUS_DIR")) {
    id->master.port = read.maybe_number("MASTER_PORT", 1, 65535).value_or(0);
    return;
  }
  const auto many = fmt::format("WORLD_SIZE={} ranks must meet somewhere", id->size);
  id->master.host = read.need("MASTER_ADDR", many);
  id->master.port = read.need_number("MASTER_PORT", many, 1, 65535);
}

/// LOCAL_RANK and LOCAL_WORLD_SIZE, or values that follow with certainty. Otherwise unknown, on all
/// ranks alike whatever their numbers: scripts that set RANK never set LOCAL_WORLD_SIZE.
void read_torch_local(const Reader& read, Identity* id) {
  const bool one_host = id->size == 1 || is_loopback(id->master.host);
  const auto size = read.maybe_number("LOCAL_WORLD_SIZE", 1, kMaxRanks);
  const auto rank = read.maybe_number("LOCAL_RANK", 0, kMaxRanks);
  id->local_size = size.value_or(one_host ? id->size : kUnknownNumber);
  if (id->local_size > id->size) {
    contradict(
        fmt::format("LOCAL_WORLD_SIZE={} is more than WORLD_SIZE={}", id->local_size, id->size));
  }
  if (!rank && id->local_size > 1 && !one_host) {
    read.need("LOCAL_RANK", fmt::format("LOCAL_WORLD_SIZE={} is", id->local_size));
  }
  id->local_rank =
      rank.value_or(id->local_size == kUnknownNumber ? kUnknownNumber : id->rank % id->local_size);
  check_less("LOCAL_RANK", id->local_rank, "LOCAL_WORLD_SIZE", id->local_size);
}

/// GROUP_RANK and GROUP_WORLD_SIZE; or by division, if every host has equally many consecutive
/// ranks.
void read_torch_hosts(const Reader& read, Identity* id) {
  const auto size = read.maybe_number("GROUP_WORLD_SIZE", 1, kMaxRanks);
  const auto rank = read.maybe_number("GROUP_RANK", 0, kMaxRanks);
  if (id->local_size == kUnknownNumber) {
    id->num_nodes = size.value_or(kUnknownNumber);
    id->node_rank = rank.value_or(kUnknownNumber);
    return;
  }
  const bool blocks = id->size % id->local_size == 0 && id->rank % id->local_size == id->local_rank;
  const auto because = fmt::format(
      "RANK={}, WORLD_SIZE={}, LOCAL_RANK={}, LOCAL_WORLD_SIZE={} do "
      "not tell the node",
      id->rank, id->size, id->local_rank, id->local_size);
  if (!blocks && !size) read.need("GROUP_WORLD_SIZE", because);
  if (!blocks && !rank) read.need("GROUP_RANK", because);
  id->num_nodes = size.value_or(id->size / id->local_size);
  id->node_rank = rank.value_or(id->rank / id->local_size);
}

}  // namespace

std::optional<Identity> read_torch(const Reader& read) {
  Identity id;
  const std::string because =
      read.which_are({"RANK", "WORLD_SIZE", "LOCAL_RANK"}) + "; a rank needs RANK and WORLD_SIZE";
  id.size = read.need_number("WORLD_SIZE", because, 1, kMaxRanks);
  id.rank = read.need_number("RANK", because, 0, kMaxRanks);
  check_less("RANK", id.rank, "WORLD_SIZE", id.size);
  read_torch_master(read, &id);
  read_torch_local(read, &id);
  read_torch_hosts(read, &id);
  id.restart_count =
      read.maybe_number("TORCHELASTIC_RESTART_COUNT", 0, std::numeric_limits<int>::max())
          .value_or(0);
  id.job_id = read.text("TORCHELASTIC_RUN_ID").value_or("none");
  id.master_taken = read.text("TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True";
  check_ranges(id, {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK",
                    "GROUP_WORLD_SIZE"});
  return id;
}

// Pods of Kubeflow's Trainer v2, which sets torchrun's options as PET_*. Source:
// pkg/runtime/framework/plugins/torch/torch.go of kubeflow/trainer. These variables are for a
// launcher, which only a pod with one process can do without.

std::optional<Identity> read_kubernetes(const Reader& read) {
  const std::string because = "other PET_ variables are";
  if (read.text("PET_NPROC_PER_NODE").value_or("auto") != "1") {
    throw Error(ErrorCode::kInvalidArgument,
                "PET_NPROC_PER_NODE is not 1, so this pod has several ranks: start the program "
                "with `lockstep run`");
  }
  Identity id;
  id.size = id.num_nodes = read.need_number("PET_NNODES", because, 1, kMaxRanks);
  id.rank = id.node_rank = read.need_number("PET_NODE_RANK", because, 0, kMaxRanks);
  check_less("PET_NODE_RANK", id.rank, "PET_NNODES", id.size);
  if (id.size > 1) {
    id.master.host = read.need("PET_MASTER_ADDR", because);
    id.master.port = read.need_number("PET_MASTER_PORT", because, 1, 65535);
  }
  id.job_id = "pet-" + read.text("PET_RDZV_ID").value_or("none");
  return id;
}

}  // namespace lockstep::inline internal
