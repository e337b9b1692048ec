#include "lockstep/launch/jobs/rank_origin.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "lockstep/error.h"
#include "lockstep/world/detect/launcher_probe.h"

namespace lockstep::inline internal {
namespace {

/// For ranks of an agent without an entry, such as a killed one.
constexpr std::string_view kUnlisted = "lockstep run (not listed)";
constexpr std::string_view kVariables = "environment variables";
constexpr std::string_view kRankTable = "rank table";
constexpr std::string_view kSpawn = "spawn()";
constexpr std::string_view kNone = "none";

std::string variable_of(const RankProcess& process, std::string_view name) {
  return value_in(process.environment, name);
}

bool is_elastic(const RankProcess& process) {
  return !variable_of(process, "TORCHELASTIC_RUN_ID").empty();
}

/// The command that users type, by the name of the launcher's probe.
std::string launcher_of(const std::string& probe, bool elastic) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kLaunchers = {{
      {"lockstep", kUnlisted},
      {"openmpi", "mpirun"},
      {"mpich", "mpiexec"},
      {"slurm", "srun"},
      {"lsf", "jsrun"},
      {"pmix", "prterun"},
      {"mindspore", "msrun"},
      {"ascend", kRankTable},
      {"horovod", "horovodrun"},
  }};
  if (probe == "torch") return std::string(elastic ? "torchrun" : kVariables);
  for (const auto& [name, launcher] : kLaunchers) {
    if (name == probe) return std::string(launcher);
  }
  return probe;
}

/// The probes' words for a job without a name. torchrun accepts any other name.
bool is_no_name(const std::string& job, bool torch) {
  if (torch) return job == "none";
  return job == "none" || job == "mindspore" || job == "ascend" || job.ends_with("-none") ||
         job.find("-none.") != std::string::npos;
}

/// The identity by `probe`; nothing unless it is this rank of this world.
std::optional<Identity> identity_by(const LauncherProbe& probe, const RankProcess& process) {
  const auto no_file = [](const std::string& path) -> std::string {
    throw Error(ErrorCode::kNotFound, path + ": not looked at");
  };
  const auto no = [](const std::string&) { return false; };
  const auto job = [&process] { return PmixJob{process.size, 0, 1}; };
  const Inputs inputs = {process.environment, no_file, no_file, job, no, no};
  const Reader read(inputs);
  const bool here = std::any_of(probe.signs.begin(), probe.signs.end(),
                                [&](const char* sign) { return read.text(sign).has_value(); });
  if (!here) return std::nullopt;
  try {
    auto identity = probe.read(read);
    const bool agrees =
        identity && identity->rank == process.rank && identity->size == process.size;
    return agrees ? identity : std::nullopt;
  } catch (const Error&) {  // it is incomplete: the rank has joined by another launcher
    return std::nullopt;
  }
}

std::string rank_endpoint(const RankProcess& process) {
  const std::string host = variable_of(process, "MASTER_ADDR");
  if (host.empty()) return variable_of(process, "LOCKSTEP_RENDEZVOUS_DIR");
  return host + ":" + variable_of(process, "MASTER_PORT");
}

bool is_copy_of_parent(const RankProcess& process) {
  return !process.program.empty() && process.program == process.parent_program;
}

/// For a process without launcher variables: a rank table gives the number of ranks, or the program
/// itself started or numbered them.
RankOrigin origin_by_others(const RankProcess& process) {
  const std::string table = variable_of(process, "RANK_TABLE_FILE");
  RankOrigin origin;
  if (!table.empty() && variable_of(process, "RANK_ID") == std::to_string(process.rank)) {
    origin.launcher = kRankTable;
    origin.endpoint = table;
  } else if (process.size == 1) {
    origin.launcher = kNone;
  } else if (process.is_thread || is_copy_of_parent(process)) {
    origin.launcher = kSpawn;
  } else {
    origin.launcher = process.parent_name.empty() ? std::string(kNone) : process.parent_name;
  }
  return origin;
}

}  // namespace

RankOrigin origin_of(const RankProcess& process) {
  const bool elastic = is_elastic(process);
  std::optional<RankOrigin> plain;
  for (const LauncherProbe& probe : launcher_probes()) {
    const auto identity = identity_by(probe, process);
    if (!identity) continue;
    const bool torch = probe.read == read_torch;
    RankOrigin origin{launcher_of(probe.name, elastic),
                      is_no_name(identity->job_id, torch) ? "" : identity->job_id,
                      torch ? rank_endpoint(process) : "",
                      identity->node_rank,
                      identity->num_nodes,
                      identity->restart_count};
    if (!torch || elastic) return origin;
    plain = origin;
  }
  return plain ? *plain : origin_by_others(process);
}

bool is_process_of_one_job(const std::string& launcher) {
  static constexpr std::array<std::string_view, 9> kLaunchers = {"torchrun",   "mpirun", "mpiexec",
                                                                 "prterun",    "jsrun",  "msrun",
                                                                 "horovodrun", kSpawn,   kUnlisted};
  return std::find(kLaunchers.begin(), kLaunchers.end(), launcher) != kLaunchers.end();
}

std::string launcher_in_words(const std::string& launcher) {
  if (launcher == kVariables) return "a script that sets RANK and WORLD_SIZE";
  if (launcher == kRankTable) return "a script with a rank table";
  if (launcher == kUnlisted) return "a lockstep run that is not in this list";
  if (launcher == kSpawn) return "spawn() in a program";
  return launcher == kNone ? "no launcher" : launcher;
}

}  // namespace lockstep::inline internal
