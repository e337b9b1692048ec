#pragma once
// Writing while training goes on.

#include <deque>
#include <exception>
#include <functional>
#include <thread>

#include "lockstep/base/mutex.h"

namespace lockstep {

/// Runs what it is given, one after the other, in a thread of its own. The first that throws ends
/// it: later ones are dropped, and the error comes out of the next call. One caller.
class BackgroundWriter {
 public:
  BackgroundWriter() = default;
  ~BackgroundWriter();  ///< Runs what was given first. What that throws is lost: wait() before.
  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;

  /// Does not wait. Errors: those of earlier jobs.
  void submit(std::function<void()> job);
  /// Until all that was given is done. Errors: those of the jobs.
  void wait();
  /// Whether there is nothing under way. Errors: those of the jobs.
  bool idle();

 private:
  void run();
  void rethrow() LOCKSTEP_REQUIRES(mutex_);

  Mutex mutex_;
  CondVar changed_;  // a job came or is done, or stopping_ turned true
  std::deque<std::function<void()>> jobs_ LOCKSTEP_GUARDED_BY(mutex_);  // the first is under way
  std::exception_ptr error_ LOCKSTEP_GUARDED_BY(mutex_);
  bool stopping_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // from the first job on
};

}  // namespace lockstep
