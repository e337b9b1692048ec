#pragma once

namespace lockstep {

/// While it lives, SIGTERM and SIGINT are only noted, so that a step can be finished and saved.
/// One at a time in a process.
class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();  ///< Restores what was there.
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  /// SIGTERM, SIGINT, or 0: the first that came.
  int pending() const;
};

}  // namespace lockstep
