#include "lockstep/world/detect/decision.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/world/detect/bootstrap_choice.h"
#include "lockstep/world/detect/launcher_probe.h"
#include "lockstep/world/detect/reader.h"
#include "lockstep/world/places.h"

namespace lockstep::inline internal {
namespace {

constexpr std::array kAgentSigns = {"LOCKSTEP_STORE", "LOCKSTEP_RANK", "LOCKSTEP_WORLD_SIZE"};
constexpr std::array kTorchSigns = {"RANK", "WORLD_SIZE", "LOCAL_RANK"};
constexpr std::array kOpenMpiSigns = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"};
constexpr std::array kPmiSigns = {"PMI_RANK", "PMI_SIZE", "MV2_COMM_WORLD_RANK"};
constexpr std::array kSlurmSigns = {"SLURM_STEP_NUM_TASKS", "SLURM_JOB_ID"};
constexpr std::array kLsfSigns = {"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"};
constexpr std::array kPmixSigns = {"PMIX_RANK", "PMIX_NAMESPACE"};
constexpr std::array kMindsporeSigns = {"MS_WORKER_NUM", "MS_ROLE"};
constexpr std::array kAscendSigns = {"RANK_ID", "RANK_SIZE", "RANK_TABLE_FILE"};
constexpr std::array kKubernetesSigns = {"PET_NNODES", "PET_NODE_RANK"};
constexpr std::array kHorovodSigns = {"HOROVOD_RANK", "HOROVOD_SIZE"};

void check_argument(const char* name, int value, int lo, int hi) {
  if (value >= lo && value <= hi) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("World::join: {} is {}, not in [{}, {}]", name, value, lo, hi));
}

int place(const char* name, const std::optional<int>& given, int lo, int alone, int size) {
  if (given) check_argument(name, *given, lo, kMaxRanks);
  return given.value_or(size == 1 ? alone : kUnknownNumber);
}

/// Checked. Errors: kInvalidArgument naming the wrong arguments.
Identity identity_of(const RankArguments& arguments, const Reader& read) {
  const int size = arguments.world_size;
  check_argument("world_size", size, 1, kMaxRanks);
  check_argument("rank", arguments.rank, 0, kMaxRanks);
  check_argument("master_port", arguments.master_port, 0, 65535);
  Identity id;
  id.launcher = "arguments";
  id.size = size;
  id.rank = arguments.rank;
  id.local_rank = place("local_rank", arguments.local_rank, 0, 0, size);
  id.local_size = place("local_world_size", arguments.local_world_size, 1, 1, size);
  id.node_rank = place("node_rank", arguments.node_rank, 0, 0, size);
  id.num_nodes = place("num_nodes", arguments.num_nodes, 1, 1, size);
  id.job_id = arguments.job_id;
  check_ranges(id,
               {"rank", "world_size", "local_rank", "local_world_size", "node_rank", "num_nodes"});
  id.master = read_master(read, id);
  if (!arguments.master_addr.empty()) id.master = {arguments.master_addr, arguments.master_port};
  return id;
}

bool used(const ProbeResult& result, const char* name) {
  return std::find(result.variables.begin(), result.variables.end(), name) !=
         result.variables.end();
}

/// Whether an agent with hosts started it: each host can be a rank of the outer launcher.
bool by_agent(const ProbeResult& result) {
  return used(result, "LOCKSTEP_STORE") || used(result, "TORCHELASTIC_RUN_ID");
}

bool is_batch_system(const ProbeResult& result) {
  return !result.probe->starts_ranks && !by_agent(result) && result.probe->read != read_torch;
}

bool same_number(int a, int b) {
  return a == kUnknownNumber || b == kUnknownNumber || a == b;
}

/// The hosts of `inner` are the ranks of `outer`.
bool ranks_are_hosts(const Identity& outer, const Identity& inner) {
  return outer.size == inner.num_nodes && outer.rank == inner.node_rank;
}

/// `first`, or a launcher below it that a batch system's single process started. Under `srun -n1`
/// the step has rank 0 of 1, and the inner launcher's data is better.
ProbeResult* innermost(std::vector<ProbeResult>& results, ProbeResult* first) {
  if (!is_batch_system(*first) || first->identity->size != 1) return first;
  for (ProbeResult& other : results) {
    if (&other > first && other.identity && other.identity->size > 1) return &other;
  }
  return first;
}

/// Whether `other` only describes the job around an agent that started this rank.
bool is_around_agent(const ProbeResult& chosen, const ProbeResult& other) {
  return by_agent(chosen) && is_batch_system(other);
}

/// Why `other` does not contradict `chosen`; "" if it does.
std::string why_no_conflict(const ProbeResult& chosen, const ProbeResult& other) {
  const Identity& a = *chosen.identity;
  const Identity& b = *other.identity;
  const bool same = a.rank == b.rank && a.size == b.size;
  if (same && same_number(a.local_rank, b.local_rank) && same_number(a.local_size, b.local_size)) {
    return "it agrees";
  }
  if (is_batch_system(other)) {
    if (chosen.probe->starts_ranks || by_agent(chosen)) return "its step started the launcher";
    if (b.size == 1 || ranks_are_hosts(b, a)) return "its tasks started the ranks";
  }
  // mpirun may start an agent on each host: its ranks then are the agents' hosts, in any order.
  const bool agents = other.probe->starts_ranks && by_agent(chosen) && !by_agent(other);
  if (agents && a.num_nodes == b.size) return "it started the agents";
  return "";
}

/// The identity of `chosen`. Unknown places come from another result that has the same rank and
/// size and all places. A script may set RANK from SLURM_PROCID and nothing else.
Identity refined(const ProbeResult& chosen, const std::vector<ProbeResult>& results) {
  Identity id = *chosen.identity;
  if (!has_unknown_place(id)) return id;
  for (const ProbeResult& other : results) {
    if (&other == &chosen || !other.identity) continue;
    const Identity& better = *other.identity;
    if (better.rank != id.rank || better.size != id.size || has_unknown_place(better)) continue;
    id.local_rank = better.local_rank;
    id.local_size = better.local_size;
    id.node_rank = better.node_rank;
    id.num_nodes = better.num_nodes;
    break;
  }
  return id;
}

constexpr const char* kArguments = "arguments";

/// `wanted`: the only launcher to read; empty: all. `notes`: remarks of launchers that are not this
/// process's after all.
std::vector<ProbeResult> run_probes(const Inputs& inputs, const std::string& wanted,
                                    std::vector<std::string>* notes) {
  std::vector<ProbeResult> results;
  for (const LauncherProbe& probe : launcher_probes()) {
    const Reader read(inputs);
    const bool here = std::any_of(probe.signs.begin(), probe.signs.end(),
                                  [&](const char* sign) { return read.text(sign).has_value(); });
    if (!here) continue;
    ProbeResult result;
    result.probe = &probe;
    if (!wanted.empty() && wanted != probe.name) {
      result.passed_over = wanted == kArguments ? "not asked: the program gives its rank itself"
                                                : "not asked: LOCKSTEP_LAUNCHER names another";
      results.push_back(std::move(result));
      continue;
    }
    try {
      result.identity = probe.read(read);
      if (result.identity) result.identity->launcher = probe.name;
    } catch (const Error& error) {
      result.problem = error.what();
    }
    result.variables = read.used();
    notes->insert(notes->end(), read.notes().begin(), read.notes().end());
    results.push_back(std::move(result));
  }
  return results;
}

/// LOCKSTEP_LAUNCHER; empty if it is not set. Errors: kInvalidArgument.
std::string wanted_launcher(const Reader& read) {
  const auto wanted = read.text("LOCKSTEP_LAUNCHER");
  if (!wanted) return "";
  std::vector<std::string> known;
  for (const LauncherProbe& probe : launcher_probes()) known.emplace_back(probe.name);
  known.emplace_back("none");
  if (std::find(known.begin(), known.end(), *wanted) != known.end()) return *wanted;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("environment variable LOCKSTEP_LAUNCHER: '{}' is not one of {}{}",
                          *wanted, fmt::join(known, ", "), did_you_mean(*wanted, known)));
}

Identity named_launcher(const std::vector<ProbeResult>& results, const std::string& name) {
  for (const ProbeResult& result : results) {
    if (result.probe->name != name) continue;
    if (result.identity) return *result.identity;
    if (!result.problem.empty()) throw Error(ErrorCode::kInvalidArgument, result.problem);
  }
  for (const LauncherProbe& probe : launcher_probes()) {
    if (probe.name != name) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("LOCKSTEP_LAUNCHER={}, but this process was not started by it: none of "
                            "{} gives a rank",
                            name, fmt::join(probe.signs, ", ")));
  }
  return {};  // none
}

/// The first complete result. An incomplete one of our own agent is an error, never skipped.
ProbeResult* first_complete(std::vector<ProbeResult>& results) {
  for (ProbeResult& result : results) {
    if (result.identity) return &result;
    if (!result.problem.empty() && result.probe == &launcher_probes().front()) return nullptr;
  }
  return nullptr;
}

/// Compares the others with `chosen`, and notes why each does not count.
void compare_others(ProbeResult& chosen, Decision* decision) {
  for (ProbeResult& other : decision->results) {
    if (&other == &chosen) continue;
    if (!other.identity) {
      if (!other.problem.empty() && !is_around_agent(chosen, other)) {
        decision->warnings.push_back(fmt::format("launcher is {}; passed over {}: {}",
                                                 chosen.probe->name, other.probe->name,
                                                 other.problem));
      }
      continue;
    }
    other.passed_over = why_no_conflict(chosen, other);
    if (!other.passed_over.empty()) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("two launchers set this process's environment: {} gives {} ({}); {} "
                            "gives {} ({}). Unset one's variables, or set LOCKSTEP_LAUNCHER to {} "
                            "or {}",
                            chosen.probe->name, describe(*chosen.identity),
                            fmt::join(chosen.probe->signs, ", "), other.probe->name,
                            describe(*other.identity), fmt::join(other.probe->signs, ", "),
                            chosen.probe->name, other.probe->name));
  }
}

Identity choose(Decision* decision, const std::vector<std::string>& notes) {
  ProbeResult* chosen = first_complete(decision->results);
  if (chosen == nullptr) {
    for (const ProbeResult& result : decision->results) {
      if (!result.problem.empty()) throw Error(ErrorCode::kInvalidArgument, result.problem);
    }
    decision->why = "no launcher's variables are set";
    decision->warnings = notes;  // irrelevant if another launcher started this process
    return {};
  }
  chosen = innermost(decision->results, chosen);
  compare_others(*chosen, decision);
  decision->why = "first by precedence of the sources that give rank and size";
  return refined(*chosen, decision->results);
}

}  // namespace

std::span<const LauncherProbe> launcher_probes() {
  static constexpr std::array kProbes = {
      LauncherProbe{"lockstep", "lockstep run, spawn()", kAgentSigns, read_agent, true},
      LauncherProbe{"torch", "torchrun, RANK and WORLD_SIZE", kTorchSigns, read_torch},
      LauncherProbe{"openmpi", "Open MPI's mpirun", kOpenMpiSigns, read_open_mpi, true},
      LauncherProbe{"mpich", "Hydra's mpiexec: MPICH, Intel MPI, MVAPICH", kPmiSigns, read_pmi,
                    true},
      LauncherProbe{"slurm", "a step of srun", kSlurmSigns, read_slurm},
      LauncherProbe{"lsf", "jsrun in a job of LSF", kLsfSigns, read_lsf},
      LauncherProbe{"pmix", "prterun and others that speak PMIx", kPmixSigns, read_pmix, true},
      LauncherProbe{"mindspore", "msrun, MindSpore's dynamic cluster", kMindsporeSigns,
                    read_mindspore},
      LauncherProbe{"ascend", "RANK_ID and a rank table", kAscendSigns, read_ascend},
      LauncherProbe{"kubernetes", "a pod of Kubeflow's Trainer", kKubernetesSigns, read_kubernetes},
      LauncherProbe{"horovod", "horovodrun", kHorovodSigns, read_horovod},
  };
  return kProbes;
}

Decision decide(const Inputs& inputs) {
  Decision decision;
  try {
    const Reader read(inputs);
    std::vector<std::string> notes;
    const std::string wanted = wanted_launcher(read);
    decision.results = run_probes(inputs, wanted, &notes);
    if (wanted.empty()) {
      decision.identity = choose(&decision, notes);
    } else {
      decision.identity = named_launcher(decision.results, wanted);
      decision.why = "LOCKSTEP_LAUNCHER names it";
    }
    choose_bootstrap(read, &decision.identity, &decision.warnings);
  } catch (const Error& error) {
    decision.problem = error.what();
  }
  return decision;
}

Decision decide(const RankArguments& arguments, const Inputs& inputs) {
  Decision decision;
  try {
    const Reader read(inputs);
    std::vector<std::string> notes;
    decision.results = run_probes(inputs, kArguments, &notes);
    decision.identity = identity_of(arguments, read);
    decision.why = "the program gives its rank itself";
    choose_bootstrap(read, &decision.identity, &decision.warnings);
  } catch (const Error& error) {
    decision.problem = error.what();
  }
  return decision;
}

}  // namespace lockstep::inline internal
