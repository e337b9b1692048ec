#pragma once
// std::mutex with annotations for clang's -Wthread-safety; other compilers ignore them.

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define LOCKSTEP_ANNOTATE(x) __attribute__((x))
#else
#define LOCKSTEP_ANNOTATE(x)
#endif
#define LOCKSTEP_CAPABILITY(name) LOCKSTEP_ANNOTATE(capability(name))
#define LOCKSTEP_SCOPED_CAPABILITY LOCKSTEP_ANNOTATE(scoped_lockable)
#define LOCKSTEP_GUARDED_BY(mutex) LOCKSTEP_ANNOTATE(guarded_by(mutex))
#define LOCKSTEP_REQUIRES(...) LOCKSTEP_ANNOTATE(requires_capability(__VA_ARGS__))
#define LOCKSTEP_EXCLUDES(...) LOCKSTEP_ANNOTATE(locks_excluded(__VA_ARGS__))
#define LOCKSTEP_ACQUIRE(...) LOCKSTEP_ANNOTATE(acquire_capability(__VA_ARGS__))
#define LOCKSTEP_RELEASE(...) LOCKSTEP_ANNOTATE(release_capability(__VA_ARGS__))
#define LOCKSTEP_NO_THREAD_SAFETY_ANALYSIS LOCKSTEP_ANNOTATE(no_thread_safety_analysis)

namespace lockstep::inline internal {

class LOCKSTEP_CAPABILITY("mutex") Mutex {
 public:
  void lock() LOCKSTEP_ACQUIRE() { mutex_.lock(); }
  void unlock() LOCKSTEP_RELEASE() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

/// Holds a Mutex for a scope. lock() and unlock() serve CondVar and gaps in the scope.
class LOCKSTEP_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) LOCKSTEP_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() LOCKSTEP_RELEASE() {
    if (held_) mutex_.unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void lock() LOCKSTEP_ACQUIRE() {
    mutex_.lock();
    held_ = true;
  }
  void unlock() LOCKSTEP_RELEASE() {
    held_ = false;
    mutex_.unlock();
  }

 private:
  Mutex& mutex_;
  bool held_ = true;
};

/// Works with MutexLock. It waits like std::condition_variable_any: loop on the condition.
using CondVar = std::condition_variable_any;

}  // namespace lockstep::inline internal
