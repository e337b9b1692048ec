#pragma once
// Whether a job goes on after a failure: a pure function.

#include <string>

#include "lockstep/launch/agent/failure.h"

namespace lockstep {

/// What of a job's past decides that.
struct RestartRecord {
  int restarts = 0;        ///< Failures after which it went on.
  int early_failures = 0;  ///< The last so many came before the first step.
};

struct RestartDecision {
  bool again = false;
  std::string why_not;  ///< For the user; empty if no restart was asked for (max_restarts 0).
};

/// Counts `failure`, which ended a generation, in `record`. Not tried again:
///   * exit code 2: the call was at fault; 126 and 127: there is no such program;
///   * the second failure in a row before the first step, of a job whose workers report steps: it
///     would fail for ever;
///   * when `max_restarts` are used up.
RestartDecision after_failure(RestartRecord* record, int max_restarts, const Failure& failure);

}  // namespace lockstep
