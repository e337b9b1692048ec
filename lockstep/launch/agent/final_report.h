#pragma once
// The agent's output when its job is over: the rest of the ranks' lines, and the report of a
// failure.

#include <optional>
#include <string>

#include "lockstep/launch/agent/agent_state.h"
#include "lockstep/launch/job/failure.h"
#include "lockstep/launch/job/run_options.h"
#include "lockstep/launch/process/console.h"
#include "lockstep/world/worker_env.h"

namespace lockstep {

struct FinalReport {
  const RunOptions& options;
  const JobAssignment& assignment;
  const AgentState& state;
  Console* console;

  /// Returns the exit code: `code`, or 1 if the output could not be written. `why_not_again`: why
  /// there is no further restart; may be empty.
  int write(int code, const std::optional<Failure>& failure,
            const std::string& why_not_again) const;

 private:
  std::optional<Deadline> read_by() const;
  std::string report_of(const Failure& failure) const;
};

}  // namespace lockstep
