#pragma once

namespace lockstep {

/// While it lives, SIGTERM, SIGINT and SIGHUP (the terminal was closed) are only noted, so that a
/// step can be finished and saved. Who presses Ctrl-C again does not want to wait: a SIGINT half a
/// second or more after the first signal does what it did before (ends the process). Sooner it
/// counts as the same one: launchers and terminals may each send it. A SIGHUP that was ignored
/// before (nohup) stays so. SIGUSR1, which batch systems can send a while before they end a job,
/// asks for a checkpoint and ends nothing; it, too, stays ignored. One at a time in a process.
class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();  ///< Restores what was there.
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  /// SIGTERM, SIGINT, SIGHUP, or 0: the first that came.
  int pending() const;
  /// Whether a SIGUSR1 came since the last call.
  bool take_save_request() const;
};

}  // namespace lockstep
