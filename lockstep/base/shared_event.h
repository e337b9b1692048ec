#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>

namespace lockstep::inline internal {

/// Lets processes sleep until something has changed.
///
/// Lives in shared memory, zero at first. A waiter registers, checks its condition, and sleeps only
/// if no signal came since. A signaller that finds no waiter makes no system call. All accesses are
/// sequentially consistent: either the signaller sees the registered waiter, or the waiter sees the
/// changed condition.
class SharedEvent {
 public:
  /// Sleeps at most `slice`; does not sleep if ready() holds after registering.
  template <class Ready>
  void wait(const Ready& ready, std::chrono::nanoseconds slice) {
    waiters_.fetch_add(1);
    const uint32_t seen = version_.load();
    if (!ready()) sleep(seen, slice);
    waiters_.fetch_sub(1);
  }

  /// Call after the condition has become true.
  void signal() {
    if (waiters_.load() == 0) return;
    version_.fetch_add(1);
    ::syscall(SYS_futex, word(), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }

 private:
  uint32_t* word() { return reinterpret_cast<uint32_t*>(&version_); }
  void sleep(uint32_t seen, std::chrono::nanoseconds slice) {
    const timespec limit{static_cast<time_t>(slice.count() / 1'000'000'000),
                         static_cast<long>(slice.count() % 1'000'000'000)};
    // Any result is fine: the caller checks again.
    ::syscall(SYS_futex, word(), FUTEX_WAIT, seen, &limit, nullptr, 0);
  }

  std::atomic<uint32_t> version_ = 0;
  std::atomic<uint32_t> waiters_ = 0;
};
static_assert(std::atomic<uint32_t>::is_always_lock_free);

}  // namespace lockstep::inline internal
