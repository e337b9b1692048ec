#pragma once
// Jobs of this host without an agent of `lockstep run`: ranks of torchrun, mpirun, srun, a shell
// loop, spawn(). Pure; rank_process.h reads the processes.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/launch/jobs/job_entry.h"
#include "lockstep/launch/jobs/rank_process.h"
#include "lockstep/world/identity.h"

namespace lockstep::inline internal {

struct OtherJob {
  /// The launcher's name of the job ("slurm-12.0", a --rdzv_id). Otherwise the launcher with the
  /// port where its ranks meet ("torchrun-29500"), with its own process ("spawn-4711"), or with the
  /// first rank's.
  std::string id;
  std::string launcher;  ///< As RankOrigin has it.
  /// The launcher's name of the job; "" if another job has that name too and `id` differs.
  std::string name;
  int size = 1;  ///< Of the world.
  int node_rank = kUnknownNumber;
  int num_nodes = kUnknownNumber;
  int restart_count = 0;
  /// The common parent of its ranks on this host; for threads, their process. 0: there is none.
  pid_t parent = 0;
  std::vector<RankProcess> ranks;  ///< On this host, by rank; never empty.
  /// Of its first rank here with a complete step; other_jobs_here() sets it.
  std::optional<JobProgress> progress;

  double began() const;  ///< Start of its first process, seconds since 1970.
  bool stopped() const;  ///< All of its processes are stopped.
};

/// Groups these ranks into jobs, the oldest first. Ranks belong together by, in this order:
/// - one name that their launcher gives the job (TORCHELASTIC_RUN_ID, Slurm's job and step, the
///   namespace of PMIx ...);
/// - one MASTER_ADDR and MASTER_PORT, or one folder, where they meet; if that is loopback, one
///   network namespace, too;
/// - one parent, or, if that has ended, one session.
/// Of two such ranks with the same number the later belongs to another job.
std::vector<OtherJob> other_jobs(std::vector<RankProcess> ranks);

/// The ranks that are no worker of `agents`, neither by descent nor by LOCKSTEP_RUN_ID. Their
/// LOCKSTEP_JOBS_DIR must be that of `environment`, because jobs with another list belong there.
/// Leaves out workers that began just before `now` (seconds since 1970): their agent may not be
/// listed yet.
std::vector<RankProcess> ranks_of_others(std::vector<RankProcess> ranks,
                                         const std::vector<JobEntry>& agents,
                                         const Environment& environment, double now);

/// The job that `name` means: by its id, or the pid of its launcher or of a rank. Null: none.
const OtherJob* find_other_job(const std::vector<OtherJob>& jobs, const std::string& name);

/// How its user ends it: "scancel 12.0", "Ctrl-C there, or kill 4711".
std::string how_to_end(const OtherJob& job);

/// Finds ranks on this host. Errors: kUnavailable (/proc is not mounted).
using FindRanks = std::function<std::vector<RankProcess>()>;

/// The jobs among the ranks that `find` returns, without those of `running`, this user's agents. If
/// `find` fails: none, and a warning with the reason.
std::vector<OtherJob> other_jobs_here(const FindRanks& find, const std::vector<JobEntry>& running);

/// Throws if `name` is such a job, to which `verb` cannot apply: kInvalidArgument with the launcher
/// and the text of `hint`.
using Hint = std::function<std::string(const OtherJob&)>;
void refuse_other_job(const std::string& verb, const std::string& name, const FindRanks& find,
                      const std::vector<JobEntry>& running, const Hint& hint);

}  // namespace lockstep::inline internal
