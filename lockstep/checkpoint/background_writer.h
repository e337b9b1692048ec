#pragma once
// Writes checkpoints while training continues.

#include <deque>
#include <exception>
#include <functional>
#include <thread>

#include "lockstep/base/mutex.h"

namespace lockstep::inline internal {

/// Runs its jobs one after the other, in a thread of its own. The first error ends it: later jobs
/// are dropped, and the next call throws the error. For one caller.
class BackgroundWriter {
 public:
  BackgroundWriter() = default;
  ~BackgroundWriter();  ///< Runs the submitted jobs first. Their errors are lost: call wait()
                        ///< before.
  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;

  /// Does not wait. Errors: those of earlier jobs.
  void submit(std::function<void()> job);
  /// Waits until all submitted jobs are done. Errors: those of the jobs.
  void wait();
  /// True if no job is in progress. Errors: those of the jobs.
  bool idle();

 private:
  void run();
  void rethrow() LOCKSTEP_REQUIRES(mutex_);

  Mutex mutex_;
  CondVar changed_;  // a job was submitted or is done, or stopping_ became true
  std::deque<std::function<void()>> jobs_ LOCKSTEP_GUARDED_BY(mutex_);  // the first is in progress
  std::exception_ptr error_ LOCKSTEP_GUARDED_BY(mutex_);
  bool stopping_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // started with the first job
};

}  // namespace lockstep::inline internal
