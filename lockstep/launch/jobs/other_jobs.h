#pragma once
// Jobs of this host that no agent of `lockstep run` started: ranks of torchrun, mpirun, srun, a
// shell loop, spawn(). Pure; rank_process.h looks at processes.

#include <functional>
#include <string>
#include <vector>

#include "lockstep/launch/jobs/job_entry.h"
#include "lockstep/launch/jobs/rank_process.h"
#include "lockstep/world/identity.h"

namespace lockstep {

struct OtherJob {
  /// What the launcher calls it ("slurm-12.0", a --rdzv_id); else the launcher with the port where
  /// its ranks meet ("torchrun-29500"), or with its own process ("spawn-4711"), or the first
  /// rank's.
  std::string id;
  std::string launcher;  ///< As RankOrigin has it.
  /// What the launcher calls it; "" where `id` says more: another job has that name too.
  std::string name;
  int size = 1;  ///< Of the world.
  int node_rank = kNotTold;
  int num_nodes = kNotTold;
  int restart_count = 0;
  /// The parent of all its ranks on this host, or, of threads, their process; 0: there is none.
  pid_t parent = 0;
  std::vector<RankProcess> ranks;  ///< On this host, by rank; never empty.

  double began() const;  ///< Its first process, seconds since 1970.
  bool stopped() const;  ///< All of them are.
};

/// The jobs of these ranks, the oldest first. Together are ranks whose launcher gives the job one
/// name (TORCHELASTIC_RUN_ID, Slurm's job and step, the namespace of PMIx ...), else those that
/// meet at one MASTER_ADDR and MASTER_PORT, or in one folder, else those of one parent, or, where
/// that has ended, of one session. Of two such ranks with the same number the later is another
/// job's.
std::vector<OtherJob> other_jobs(std::vector<RankProcess> ranks);

/// Those of `ranks` that are no worker of `agents`, neither by descent nor by LOCKSTEP_RUN_ID, and
/// whose LOCKSTEP_JOBS_DIR is that of `environment`: jobs with a list of their own keep their ranks
/// to it.
/// A worker that began just before `now` (seconds since 1970) is left out as well: its agent may
/// not have entered itself yet.
std::vector<RankProcess> ranks_of_others(std::vector<RankProcess> ranks,
                                         const std::vector<JobEntry>& agents,
                                         const Environment& environment, double now);

/// The job that `name` means: its id, or the process of its launcher or of a rank. Null: none.
const OtherJob* find_other_job(const std::vector<OtherJob>& jobs, const std::string& name);

/// How its user ends it: "scancel 12.0", "Ctrl-C there, or kill 4711".
std::string how_to_end(const OtherJob& job);

/// Looks for ranks on this host. Errors: kUnavailable (/proc is not mounted).
using FindRanks = std::function<std::vector<RankProcess>()>;

/// As above, of what `find` finds beside this user's agents, `running`. Where it cannot look there
/// are none, and a warning says why.
std::vector<OtherJob> other_jobs_here(const FindRanks& find, const std::vector<JobEntry>& running);

/// Throws where `name` is such a job, which `verb` can do nothing with: kInvalidArgument with the
/// launcher and the words of `hint`.
using Hint = std::function<std::string(const OtherJob&)>;
void refuse_other_job(const std::string& verb, const std::string& name, const FindRanks& find,
                      const std::vector<JobEntry>& running, const Hint& hint);

}  // namespace lockstep
