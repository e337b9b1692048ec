#pragma once
// What a worker tells `lockstep run` of its progress: for `lockstep ps`, and so that a job that
// always fails before its first step is not started again and again (--max_restarts). Lockstep's
// trainer does this itself. Under other launchers these calls do nothing.

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

/// While it lives, this rank does other work than steps, which may take long: `what` ("evaluation",
/// at most 23 bytes). `lockstep ps` shows it and does not count its time as a step's. One at a
/// time, in the thread that reports steps.
class ReportedWork {
 public:
  explicit ReportedWork(std::string_view what);
  ~ReportedWork();
  ReportedWork(const ReportedWork&) = delete;
  ReportedWork& operator=(const ReportedWork&) = delete;
};

/// Whether `lockstep run` ends this generation of workers because hosts of its job came or went:
/// then the job goes on by itself, with others. It is set before SIGTERM is sent; on a host that
/// the user takes away, a worker may learn it later, or never.
bool job_goes_on();

}  // namespace lockstep
