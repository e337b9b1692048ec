#pragma once
// Sleeping in shared memory until something has changed.

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>

namespace lockstep::shm {

/// Lives in shared memory, zero at first. A waiter registers, looks at its condition, and sleeps
/// only if nobody has signalled since; a signaller that finds no waiter makes no system call. All
/// accesses are sequentially consistent: of "condition becomes true, is anyone waiting?" and "I
/// wait, is it true?" one sees the other.
class Event {
 public:
  /// Sleeps at most `slice`, not at all when ready() holds after registering.
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
    // Any outcome will do: the caller looks again.
    ::syscall(SYS_futex, word(), FUTEX_WAIT, seen, &limit, nullptr, 0);
  }

  std::atomic<uint32_t> version_ = 0;
  std::atomic<uint32_t> waiters_ = 0;
};
static_assert(std::atomic<uint32_t>::is_always_lock_free);

}  // namespace lockstep::shm
