#pragma once
// These calls report the progress of a rank. `lockstep ps` shows it under any launcher. `lockstep
// run` also stops restarting (--max_restarts) a job that always fails before its first step.
// Lockstep's trainer makes these calls itself. Of ranks that are threads of one process, only rank
// 0 reports.
//
// Use:
//   lockstep::expect_steps();
//   for (int64_t step = 1; step <= num_steps; ++step) {
//     const double loss = train_one_step();
//     lockstep::report_step({.step = step, .total = num_steps, .loss = loss});
//   }
//   const lockstep::ReportedWork evaluation("evaluation");  // until the end of its block
//
// Threads: one at a time reports steps; any may have ReportedWork. Of two reports at the same
// instant one may get lost. Nothing is collective.
// Cost: a reading of the clock and a write to memory; the first call some 0.1 ms.
// Errors: none. A process without memory for its reports goes on without them.

#include <cmath>
#include <cstdint>
#include <string_view>

namespace lockstep {

/// Announces that this rank will call report_step(). Call it once, before any step that may fail.
void expect_steps();

/// Progress of a rank; an unknown value keeps its default.
struct StepFigures {
  int64_t step = 0;            ///< Done.
  int64_t total = 0;           ///< Steps in all.
  double loss = NAN;           ///< Shown unchanged.
  double seconds_left = -1;    ///< To the end of the run.
  std::string_view note = {};  ///< The reason of a delay, in a few words (47 bytes).
  int32_t epoch = 0;           ///< From 1.
  int32_t num_epochs = 0;
};

/// Reports a complete training step. Without figures it counts steps and keeps the earlier figures.
void report_step();
void report_step(const StepFigures& figures);

/// While the object lives, this rank does work other than steps, which may take long: `what`
/// ("evaluation", at most 23 bytes). `lockstep ps` shows it and does not count its time as a
/// step's. Any thread may have one, also beside the thread that reports steps. Of several at a time
/// only the one that began first is shown; the others have no effect.
class ReportedWork {
 public:
  explicit ReportedWork(std::string_view what);
  ~ReportedWork();
  ReportedWork(const ReportedWork&) = delete;
  ReportedWork& operator=(const ReportedWork&) = delete;

 private:
  int64_t begun_ns_ = 0;  // on the steady clock; 0: it is not shown
};

/// Whether `lockstep run` ends this generation of workers because hosts joined or left the job: the
/// job then continues by itself in a new generation. It is set before SIGTERM is sent. On a host
/// that the user removes, a worker may see it late or never. False under other launchers. Cost: a
/// read of memory.
bool job_goes_on();

}  // namespace lockstep
