#pragma once
// The time for which this process stood still: stopped, or paused with its container or its
// machine.
//
// A process that did not run for a minute has not waited for a minute: its peers, frozen with it,
// had no time to answer. So a Deadline counts the time for which its process ran.

#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>

#include "lockstep/base/mutex.h"

namespace lockstep::inline internal {

/// Knowledge of when a process ran. Pure: the caller passes the time.
struct Running {
  using Ticks = uint32_t;  ///< It wraps after 497 days; only differences count.
  using Tick = std::chrono::duration<int64_t, std::centi>;

  /// With a Pulse, looks are at least this frequent.
  static constexpr Tick kPulse{25};
  /// A look may be late by this because the cores are busy: that is no standstill.
  static constexpr Tick kLate{100};
  /// Looks closer together than this need not be recorded.
  static constexpr Tick kFresh{10};

  Ticks seen = 0;    ///< The last time at which it was seen to run.
  Ticks missed = 0;  ///< Total time that it stood still before that.

  bool is_fresh(Ticks now) const { return now - seen < kFresh.count(); }
  /// Records that it runs at `now`. `watched`: a Pulse exists, so a gap between two looks is a
  /// standstill.
  Running seen_at(Ticks now, bool watched) const;
};

/// One moment on two clocks: the steady one, and this process's own time, which is `missed` behind.
struct Moment {
  std::chrono::steady_clock::time_point now;
  std::chrono::steady_clock::duration missed{};

  /// In the process's own time.
  std::chrono::steady_clock::time_point own() const { return now - missed; }
};

/// The present moment. Cost: a look at the clock and at one word. Any thread, no lock.
Moment this_moment();

/// While one lives, a thread reads the clock four times per second, so that standstills are
/// noticed.
class Pulse {
 public:
  /// The Pulse of this process, made if there is none. Errors: std::system_error, as std::thread.
  static std::shared_ptr<Pulse> of_process();
  ~Pulse();
  Pulse(const Pulse&) = delete;
  Pulse& operator=(const Pulse&) = delete;

 private:
  Pulse();
  void run();

  const uint32_t generation_;
  Mutex mutex_;
  CondVar changed_;
  bool ending_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace lockstep::inline internal
