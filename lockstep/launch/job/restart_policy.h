#pragma once
// Whether a job is restarted after a failure: a pure function.

#include <chrono>
#include <cstdint>
#include <string>

#include "lockstep/launch/job/failure.h"

namespace lockstep::inline internal {

/// The part of a job's past that decides this.
struct RestartRecord {
  int restarts = 0;        ///< Failures after which the job was restarted.
  int early_failures = 0;  ///< Latest failures in a row before a step.
  bool stepped = false;    ///< Workers have reported steps, in some generation.
  int in_a_row = 0;        ///< Failures since the last progress, including the one that ended it.
};

struct RestartDecision {
  bool again = false;
  std::string why_not;  ///< For the user; empty if no restart was asked for (max_restarts 0).
};

/// Counts `failure`, which ended a generation, in `record`. There is no restart after
///   * exit code 2 in generation 1: the call was wrong (in later generations it was right once);
///   * 126 and 127 in generation 1: there is no such program (later a file server may be away);
///   * the second failure in a row before the first step, if workers report steps and have never
///     completed one: the job would fail for ever;
///   * the eighth such failure if they have: a resource such as a file server does not come back.
///     These failures cost no restarts;
///   * `max_restarts` restarts.
RestartDecision after_failure(RestartRecord* record, int max_restarts, const Failure& failure,
                              int64_t generation);

/// Time from the last failure to the next start: 0, 1, 2, 4, ... 60 s, by the number of failures in
/// a row. After progress it is 0 again: after a step, or after a minute of work if no steps are
/// reported.
std::chrono::seconds restart_delay(const RestartRecord& record);

}  // namespace lockstep::inline internal
