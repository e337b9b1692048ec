#pragma once
// Why a job ended: the one failure that every agent reports, last and alone.

#include <string>
#include <vector>

#include "lockstep/base/exit_status.h"
#include "lockstep/world/worker_env.h"

namespace lockstep {

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

/// A failure of this node and not of a worker; `what` happened to it.
Failure node_failure(const JobPlan& plan, const ExitStatus& status, const std::string& what);

/// For sending it between agents. Errors of the second: kCorrupt.
std::string to_json(const Failure& failure);
Failure failure_from_json(const std::string& text);

/// One line without newline, e.g. "rank 1 (node 0, hosta) failed: exit code 3 after 0.52 s: WHY";
/// WHY: the worker's own words, where it had any.
std::string failure_line(const Failure& failure, int num_nodes);

/// The shortest form: "rank 1: WHY", "rank 1", or the first line of a node's cause.
std::string failure_words(const Failure& failure);

/// What the user sees at the end, without a last newline: one line of facts and the
/// worker's own last words, then the end of its stderr. shown: it has just been on the same screen,
/// which is said instead.
std::string report_text(const Failure& failure, int num_nodes, bool shown = false);

}  // namespace lockstep
