#pragma once
// Why a job ended: the one failure that every agent reports, last and alone.

#include <string>
#include <vector>

namespace lockstep {

/// How a process ended.
struct ExitStatus {
  int code = 0;    ///< Exit code; 0 when a signal ended it.
  int signal = 0;  ///< 0: it exited.
  bool ok() const { return code == 0 && signal == 0; }
  /// What a shell would make of it: the code, or 128 + signal.
  int shell_code() const { return signal != 0 ? 128 + signal : code; }
};

/// "SIGKILL", or "signal 40" for one without a name.
std::string signal_name(int signal);

/// "exit code 3", "SIGSEGV".
std::string describe(const ExitStatus& status);

/// What the workers said of their steps before a failure (progress.h).
enum class Steps {
  kUnknown,  ///< Nothing.
  kNone,     ///< That they report them; none was complete.
  kSome,     ///< That one was complete.
};

struct Failure {
  int node_rank = 0;
  std::string host;
  int rank = -1;       ///< -1: not a worker's failure; `cause` says what happened.
  int pid = 0;         ///< Of the worker, on its host.
  ExitStatus status;   ///< Of the worker; else what the job ends with.
  double seconds = 0;  ///< From the worker's start to its end.
  Steps steps = Steps::kUnknown;
  /// Where rank is -1: one line. Else what the worker wrote into its error file; may be empty.
  std::string cause;
  std::string log_dir;  ///< Folder with the worker's output; may be empty.
  std::vector<std::string> stderr_tail;
};

/// For sending it between agents. Errors of the second: kCorrupt.
std::string to_json(const Failure& failure);
Failure failure_from_json(const std::string& text);

/// One line without newline, e.g. "rank 1 (node 0, hosta) failed: exit code 3 after 0.52 s: WHY";
/// WHY: the worker's own words, where it had any.
std::string failure_line(const Failure& failure, int num_nodes);

/// What the user sees at the end, without a last newline: one line of facts and the
/// worker's own last words, then the end of its stderr. shown: it has just been on the same screen,
/// which is said instead.
std::string report_text(const Failure& failure, int num_nodes, bool shown = false);

}  // namespace lockstep
