#include "lockstep/launch/jobs/held_agent.h"

#include <poll.h>

#include <algorithm>
#include <chrono>

#include "lockstep/base/children.h"
#include "lockstep/launch/jobs/past_jobs.h"
#include "lockstep/launch/jobs/registry.h"

namespace lockstep {

bool HeldAgent::ended(int wait_ms) const {
  pollfd item{pidfd.get(), POLLIN, 0};
  return !pidfd || ::poll(&item, 1, wait_ms) > 0;
}

std::vector<JobEntry> running_jobs(WithoutProc without_proc) {
  auto jobs = list_jobs(registry_folders(this_environment()), without_proc);
  for (JobEntry& job : jobs) {
    job.progress = progress_of(read_progress_memory(job.steps));
    job.stopped = is_stopped(job.pid);
  }
  return jobs;
}

std::vector<JobEntry> jobs_that_are_over(const std::vector<JobEntry>& running) {
  auto jobs = past_jobs(past_jobs_folder(this_environment()));
  std::erase_if(jobs, [&](const JobEntry& job) {
    return std::any_of(running.begin(), running.end(), [&](const JobEntry& each) {
      return each.pid == job.pid && each.began == job.began;
    });
  });
  for (JobEntry& job : jobs) job.over = true;
  return jobs;
}

std::vector<HeldAgent> hold_agents(std::vector<JobEntry> jobs) {
  std::vector<HeldAgent> agents;
  for (JobEntry& job : jobs) {
    UniqueFd pidfd = try_open_pidfd(job.pid);
    agents.push_back({std::move(job), std::move(pidfd)});
  }
  // List again: an agent that is still alive is the process that was opened.
  const auto alive = running_jobs();
  std::erase_if(agents, [&](const HeldAgent& agent) {
    return std::none_of(alive.begin(), alive.end(),
                        [&](const JobEntry& job) { return job.pid == agent.job.pid; });
  });
  return agents;
}

}  // namespace lockstep
