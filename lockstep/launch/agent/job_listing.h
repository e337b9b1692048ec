#pragma once
// What `lockstep ps` and its like know of the job that an agent runs.

#include <optional>
#include <string>
#include <vector>

#include "lockstep/launch/agent/agent_state.h"
#include "lockstep/launch/job/failure.h"
#include "lockstep/launch/jobs/registry.h"
#include "lockstep/world/worker_env.h"

namespace lockstep {

class JobListing {
 public:
  explicit JobListing(const Environment& environment);

  /// Files that must be gone with this agent.
  const std::vector<std::string>& files() const { return file_.candidates(); }

  /// The job begins. It is listed when due() comes: one that is over sooner should not wait for a
  /// disk.
  void begin();
  std::optional<AgentTime> due() const { return due_; }
  bool written() const { return file_.written(); }

  struct Generation {
    std::string run_folder;  ///< Empty: none, as the next.
    std::string attempt_folder;
    std::optional<std::string> steps;  ///< Where the ranks' steps are seen; none: as before.
  };
  /// Lists the job, or says what has changed.
  void write(const JobPlan& plan, const std::vector<std::string>& command,
             const Generation& generation);
  /// For who asks later how it went. Nothing of a job that was not listed.
  void remember_end(int code, const std::optional<Failure>& failure, int num_nodes);
  void remove();

 private:
  const Environment& environment_;
  JobFile file_;
  JobEntry entry_;
  double began_ = 0;  ///< Seconds since 1970.
  std::optional<AgentTime> due_;
};

}  // namespace lockstep
