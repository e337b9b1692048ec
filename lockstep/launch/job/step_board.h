#pragma once
// Where workers tell their agent how far they are: a slot each, in memory that outlives them. The
// workers' side: progress.h.

#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/unique_fd.h"
#include "lockstep/launch/job/failure.h"
#include "lockstep/world/step_slot.h"

namespace lockstep {

class StepBoard {
 public:
  /// Errors: kIo.
  explicit StepBoard(int workers);

  /// How workers, and other processes of this user, open it: LOCKSTEP_STEPS of their environment.
  std::string path() const;

  /// kSome as soon as one worker has made a step, kNone if one has said that it will report them.
  Steps steps() const;

  /// See job_goes_on(). What hinders it costs the workers' knowledge alone.
  void tell_job_goes_on() const;

 private:
  UniqueFd memory_;
};

/// What a worker has reported.
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
  int64_t work_ns = 0;    ///< Since when it does `work`.
  std::string work = {};  ///< What it does between steps; empty: nothing.
};

/// Of the workers that have said something; a slot that is being written just now is read again.
/// None where `path` cannot be read, or is no board.
std::vector<RankSteps> read_step_board(const std::string& path);

/// One node's progress: that of its first worker that has made a step.
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

/// Nothing before a first step. `now_ns`: CLOCK_MONOTONIC.
std::optional<JobProgress> progress_of(const std::vector<RankSteps>& ranks, int64_t now_ns);

}  // namespace lockstep
