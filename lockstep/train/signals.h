#pragma once

namespace lockstep::inline internal {

/// During its lifetime SIGTERM, SIGINT and SIGHUP (the terminal was closed) are only recorded, so
/// that a step can be finished and saved. A SIGINT half a second or more after the first signal has
/// its previous effect (ends the process), because the user will not wait. A sooner one counts as
/// the same, since launchers and terminals may each send it. A SIGHUP that was ignored before
/// (nohup) stays ignored. SIGUSR1, which batch systems can send before they end a job, requests a
/// checkpoint and ends nothing. It stays ignored, too. One per process at a time.
class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();  ///< Restores the previous handlers.
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  /// The first of SIGTERM, SIGINT and SIGHUP that came, or 0.
  int pending() const;
  /// Whether a SIGUSR1 came since the last call.
  bool take_save_request() const;
};

}  // namespace lockstep::inline internal
