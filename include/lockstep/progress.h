#pragma once
// What a worker tells `lockstep run` of its progress: for `lockstep ps`, and so that a job that
// always fails before its first step is not started again and again (--max_restarts). Lockstep's
// trainer does this itself. Under other launchers these calls do nothing.

#include <atomic>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace lockstep {

/// This rank will call report_step(). Call it once, before what may fail.
void expect_steps();

/// How far a rank is; what is not known is left as it is.
struct StepFigures {
  int64_t step = 0;            ///< Done.
  int64_t total = 0;           ///< Of so many.
  double loss = NAN;           ///< Shown as it is.
  double seconds_left = -1;    ///< To the end of the run.
  std::string_view note = {};  ///< A few words (47 bytes) on what holds it up.
  int32_t epoch = 0;           ///< From 1.
  int32_t num_epochs = 0;
};

/// A training step is complete. The first call costs some microseconds, each further one a reading
/// of the clock. Without figures steps are counted, and what was told before stays. One thread at a
/// time.
void report_step();
void report_step(const StepFigures& figures);

/// While it lives, this rank does something else than steps, which may take long: `what`
/// ("evaluation", at most 23 bytes). `lockstep ps` says so, and takes its time for no step's. One
/// at a time, in the thread that reports steps.
class ReportedWork {
 public:
  explicit ReportedWork(std::string_view what);
  ~ReportedWork();
  ReportedWork(const ReportedWork&) = delete;
  ReportedWork& operator=(const ReportedWork&) = delete;
};

/// Whether `lockstep run` ends this generation of workers because nodes of its job came or went:
/// then the job goes on by itself, with others. It says so before it sends SIGTERM; a worker of
/// which the user ends the node may learn it later, or never.
bool job_goes_on();

// Between workers, their agent and `lockstep ps`: a slot for each worker in memory that outlives
// it.
inline constexpr char kStepBoardName[] = "lockstep-steps";
inline constexpr char kExpectsSteps = 'e';
inline constexpr char kStepped = 's';
struct alignas(128) StepSlot {
  std::atomic<char> mark = 0;         ///< One of the two above; 0: the worker has said nothing.
  std::atomic<char> goes_on = 0;      ///< The agent's; see job_goes_on().
  std::atomic<uint32_t> version = 0;  ///< Odd while the rest is being written.
  int64_t step = 0;
  int64_t total = 0;
  double loss = 0;
  double seconds_left = 0;
  double step_seconds = 0;  ///< Mean of the last steps; 0: not yet known.
  int64_t stepped_ns = 0;   ///< When the last was complete: CLOCK_MONOTONIC.
  char note[48] = {};
  int32_t epoch = 0;
  int32_t num_epochs = 0;
  int64_t work_ns = 0;  ///< When other work than steps began.
  char work[24] = {};   ///< Its name; empty: there is none.
};

}  // namespace lockstep
