#pragma once
// Ranks' progress as their agent and `lockstep ps` see it. An agent has a slot for each worker, in
// memory that outlives them. The ranks' side is progress.h.

#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/unique_fd.h"
#include "lockstep/launch/job/failure.h"
#include "lockstep/world/step_slot.h"

namespace lockstep::inline internal {

class ProgressMemory {
 public:
  /// Errors: kIo.
  explicit ProgressMemory(int workers);

  /// The path by which workers, and other processes of this user, open it: LOCKSTEP_STEPS.
  std::string path() const;

  /// kSome if a worker has made a step; kNone if one has announced reports but made no step.
  Steps steps() const;

  /// See job_goes_on(). An error here only keeps the workers from knowing it.
  void announce_job_goes_on() const;

 private:
  UniqueFd memory_;
};

/// A worker's report.
struct RankSteps {
  int local_rank = 0;
  char mark = 0;  ///< StepSlot::mark.
  int64_t step = 0;
  int64_t total = 0;
  double loss = 0;
  double seconds_left = -1;
  double step_seconds = 0;
  int64_t stepped_ns = 0;
  std::string note = {};
  int epoch = 0;
  int num_epochs = 0;
  int64_t work_ns = 0;    ///< Start of `work`.
  std::string work = {};  ///< Its activity between steps; empty: none.
  int64_t begun_ns = 0;   ///< StepSlot::begun_ns.
  int64_t begun_step = 0;
};

/// Reports of the workers; reads a slot again if it is being written. Empty if `path` cannot be
/// read or is no ProgressMemory.
std::vector<RankSteps> read_progress_memory(const std::string& path);

/// The report of a rank without an agent.
struct OwnReport {
  int pid = 0;             ///< Of the rank, in its own pid namespace.
  uint64_t pid_space = 0;  ///< That namespace, as lockstep::pid_space() has it.
  RankSteps steps;
};

/// The report in `memory`, an open file. Nothing if it is no OwnSteps, or has no report yet. Any
/// process of the user may write there, and a report with impossible numbers counts as none.
std::optional<OwnReport> read_own_steps(int memory);

/// One host's progress: that of its first worker with a complete step.
struct JobProgress {
  int64_t step = 0;
  int64_t total = 0;  ///< 0: unknown.
  double loss = 0;    ///< NaN: unknown.
  double seconds_left = -1;
  double step_seconds = 0;  ///< 0: unknown.
  std::string note = {};    ///< "no step for 40 s", "evaluation for 40 s", or the worker's.
  int epoch = 0;            ///< From 1; 0: unknown.
  int num_epochs = 0;
};

/// Nothing before the first step. `now_ns`: CLOCK_MONOTONIC. Where the worker gives no
/// `seconds_left`, it is estimate_left() of the steps since the worker's start.
std::optional<JobProgress> progress_of(const std::vector<RankSteps>& ranks, int64_t now_ns);
/// The same at this moment.
std::optional<JobProgress> progress_of(const std::vector<RankSteps>& ranks);

}  // namespace lockstep::inline internal
