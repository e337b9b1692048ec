#pragma once
// Why a job ended: the one failure that every agent reports, once and last.

#include <string>
#include <vector>

#include "lockstep/base/children.h"
#include "lockstep/world/worker_env.h"

namespace lockstep::inline internal {

/// The workers' reports of steps before a failure (progress.h).
enum class Steps {
  kUnknown,  ///< No reports.
  kNone,     ///< Workers report steps; none was complete.
  kSome,     ///< At least one was complete.
};

struct Failure {
  int node_rank = 0;
  std::string host;
  int rank = -1;       ///< -1: not a worker's failure; `cause` describes it.
  int pid = 0;         ///< Of the worker, on its host.
  ExitStatus status;   ///< Of the worker; else of the job.
  double seconds = 0;  ///< From the worker's start to its end.
  Steps steps = Steps::kUnknown;
  /// One line if rank is -1. Otherwise the text of the worker's error file; may be empty.
  std::string cause;
  std::string log_dir;  ///< Folder with the worker's output; may be empty.
  std::vector<std::string> stderr_tail;
};

/// A failure of this host and not of a worker; `what` describes it.
Failure host_failure(const JobAssignment& assignment, const ExitStatus& status,
                     const std::string& what);

/// JSON for messages between agents. Errors of the second: kCorrupt.
std::string to_json(const Failure& failure);
Failure failure_from_json(const std::string& text);

/// One line without newline, e.g. "rank 1 (host 0, hosta) failed: exit code 3 after 0.52 s: WHY".
/// WHY: the worker's own message, if there is one. After SIGKILL its last line on stderr is none.
std::string failure_line(const Failure& failure, int num_nodes);

/// The shortest form: "rank 1: WHY", "rank 1", or the first line of a host's cause.
std::string failure_words(const Failure& failure);

/// The report that the user sees last, without a last newline. It has one line of facts with the
/// worker's own message, then the end of its stderr. shown: the same screen already shows that end,
/// so the report only refers to it.
std::string report_text(const Failure& failure, int num_nodes, bool shown = false);

}  // namespace lockstep::inline internal
