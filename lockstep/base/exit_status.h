#pragma once
// The way in which a process ended.

#include <string>

namespace lockstep {

struct ExitStatus {
  int code = 0;    ///< Exit code; 0 if a signal ended it.
  int signal = 0;  ///< 0: it exited.
  bool ok() const { return code == 0 && signal == 0; }
  /// The status in a shell: the code, or 128 + signal.
  int shell_code() const { return signal != 0 ? 128 + signal : code; }
};

/// "SIGKILL", or "signal 40" for one without a name.
std::string signal_name(int signal);

/// "exit code 3", "SIGSEGV".
std::string describe(const ExitStatus& status);

}  // namespace lockstep
