#pragma once
// The entry of an agent's job for `lockstep ps` and similar commands.

#include <optional>
#include <string>
#include <vector>

#include "lockstep/launch/agent/agent_state.h"
#include "lockstep/launch/job/failure.h"
#include "lockstep/launch/jobs/registry.h"
#include "lockstep/world/worker_env.h"

namespace lockstep::inline internal {

class JobListing {
 public:
  explicit JobListing(const Environment& environment);

  /// Files that must not outlive this agent.
  const std::vector<std::string>& files() const { return file_.candidates(); }

  /// The job begins. It is listed at due(): a job that is over sooner should not wait for a disk.
  void begin();
  std::optional<AgentTime> due() const { return due_; }
  bool written() const { return file_.written(); }

  struct Generation {
    std::string run_folder;  ///< Empty: none. So for the next member.
    std::string attempt_folder;
    std::optional<std::string> steps;  ///< File with the ranks' steps; none: unchanged.
  };
  /// Lists the job, or updates its entry.
  void write(const JobAssignment& assignment, const std::vector<std::string>& command,
             const Generation& generation);
  /// Records how the job ended, for later queries. Does nothing for a job that was not listed.
  void remember_end(int code, const std::optional<Failure>& failure, int num_nodes);
  void remove();

 private:
  const Environment& environment_;
  JobFile file_;
  JobEntry entry_;
  double began_ = 0;  ///< Seconds since 1970.
  std::optional<AgentTime> due_;
};

}  // namespace lockstep::inline internal
