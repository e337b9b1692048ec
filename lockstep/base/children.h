#pragma once
// Management of child processes by kernel interfaces, and the ways in which they end.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace lockstep::inline internal {

/// The way in which a process ended.
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

/// Descendants whose parent dies become this process's children, so that none is lost.
void adopt_orphans();

/// Reaps this child if it has ended.
std::optional<ExitStatus> reap(pid_t pid);

/// The next child that has ended and has not been reaped; 0: none.
pid_t ended_child();

/// True if a signal is ending the process: the kernel still frees its memory.
bool dying_by_signal(pid_t pid);

/// True if the group has a process, including dead ones that have not been reaped.
bool group_exists(pid_t group);

/// Kills all remaining children except these, and their descendants, and waits some seconds for
/// them. False if one is left.
bool kill_remaining_children(const std::vector<pid_t>& except);

}  // namespace lockstep::inline internal
