#pragma once
// Tasks that a dedicated thread runs in the order of their submission.

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/base/mutex.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

/// An error as it travels between threads. Each thread throws its own exception made from it: the
/// text inside a copied exception is shared, which ThreadSanitizer cannot follow into the library.
struct CarriedError {
  ErrorCode code;
  std::string text;
  [[noreturn]] void raise() const { throw Error(code, text); }
};

/// State that a Work shares with the thread that runs it.
class WorkState {
 public:
  virtual ~WorkState() = default;
  bool done() const { return done_.load(std::memory_order_acquire); }
  /// Returns when finish() was called; throws the failure given to it, if any.
  void wait();
  void finish(std::optional<CarriedError> failure);
  /// See Work::then().
  void then(std::function<void()> last);

 protected:
  /// Returns when done(). The waiting thread may do the work itself.
  virtual void await();

 private:
  void run_last();

  std::atomic<bool> done_ = false;  // set under mutex_, after failure_
  Mutex mutex_;
  CondVar finished_;
  std::optional<CarriedError> failure_;  // written once, before done_
  std::atomic<bool> has_last_ = false;   // until all have run
  Mutex last_mutex_;                     // held while one of last_ runs
  std::vector<std::function<void()>> last_ LOCKSTEP_GUARDED_BY(last_mutex_);
  size_t num_run_ LOCKSTEP_GUARDED_BY(last_mutex_) = 0;  // of last_
};

/// First in, first out, one thread, started by the first push. The thread takes no signals. The
/// destructor lets it finish queued tasks, then joins it.
class WorkQueue {
 public:
  WorkQueue() = default;
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  /// An exception of `task` goes to the state's wait().
  std::shared_ptr<WorkState> push(std::function<void()> task);
  /// Returns when all tasks pushed so far are done. Costs one load when none is pending.
  void wait_idle();
  bool idle() const { return pending_.load(std::memory_order_acquire) == 0; }

 private:
  struct Item {
    std::function<void()> task;
    std::shared_ptr<WorkState> state;
  };
  void run();

  std::atomic<int> pending_ = 0;  // pushed and not done; changes under mutex_
  Mutex mutex_;
  CondVar changed_;  // signalled when items_ grows, pending_ shrinks to 0 or stopping_ turns true
  std::deque<Item> items_ LOCKSTEP_GUARDED_BY(mutex_);
  bool stopping_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace lockstep::inline internal
