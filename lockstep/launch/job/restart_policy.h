#pragma once
// Whether a job goes on after a failure: a pure function.

#include <chrono>
#include <cstdint>
#include <string>

#include "lockstep/launch/job/failure.h"

namespace lockstep {

/// What of a job's past decides that.
struct RestartRecord {
  int restarts = 0;        ///< Failures after which it went on.
  int early_failures = 0;  ///< The last so many came before the first step.
  bool stepped = false;    ///< Workers have reported steps, in some generation.
  int in_a_row = 0;  ///< Failures since there was progress; the last one is the first of them.
};

struct RestartDecision {
  bool again = false;
  std::string why_not;  ///< For the user; empty if no restart was asked for (max_restarts 0).
};

/// Counts `failure`, which ended a generation, in `record`. Not tried again:
///   * exit code 2 in generation 1: the call was at fault (later it was good once already);
///   * 126 and 127 in generation 1: there is no such program (later a file server is away);
///   * the second failure in a row before the first step, of a job whose workers report steps and
///     never came to one: it would fail for ever;
///   * the eighth such, of a job that did: what it needs to begin, a file server perhaps, does not
///     come back. These cost no restarts;
///   * when `max_restarts` are used up.
RestartDecision after_failure(RestartRecord* record, int max_restarts, const Failure& failure,
                              int64_t generation);

/// From the last failure to the next start: 0, 1, 2, 4, ... 60 s, by the number of failures in a
/// row. After progress it is 0 again: steps, or, where none are reported, a minute of work.
std::chrono::seconds restart_delay(const RestartRecord& record);

}  // namespace lockstep
