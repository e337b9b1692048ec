#pragma once
// For how long this process stood still: stopped, paused with its container or its machine.
//
// Who did not run for a minute has not waited for a minute: his peers, frozen with him, had no time
// to answer. So a Deadline counts the time for which its process ran.

#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>

#include "lockstep/base/mutex.h"

namespace lockstep {

/// What is known of when a process ran. Pure: the caller says what time it is.
struct Running {
  using Ticks = uint32_t;  ///< They go round after 497 days; only differences count.
  using Tick = std::chrono::duration<int64_t, std::centi>;

  /// How often somebody is sure to look, where there is a Pulse.
  static constexpr Tick kPulse{25};
  /// What a look may come later because others had the cores: that is no standstill.
  static constexpr Tick kLate{100};
  /// Looks that follow each other sooner need not be told.
  static constexpr Tick kFresh{10};

  Ticks seen = 0;    ///< It was seen to run, the last time.
  Ticks missed = 0;  ///< It stood still before that, in all.

  bool is_fresh(Ticks now) const { return now - seen < kFresh.count(); }
  /// It runs at `now`. `watched`: by a Pulse, so that a gap between two looks is a standstill.
  Running seen_at(Ticks now, bool watched) const;
};

/// One moment on two clocks: the steady one, and how far behind it this process' own time is.
struct Moment {
  std::chrono::steady_clock::time_point now;
  std::chrono::steady_clock::duration missed{};

  /// In the process' own time.
  std::chrono::steady_clock::time_point own() const { return now - missed; }
};

/// This one. A look at the clock and at one word. Any thread, no lock.
Moment this_moment();

/// While one lives, a thread looks at the clock four times a second, so that standstills are
/// noticed.
class Pulse {
 public:
  /// That of this process, made when there is none. Errors: std::system_error, as std::thread.
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

}  // namespace lockstep
