#include "lockstep/launch/jobs/other_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "lockstep/base/addresses.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/log.h"
#include "lockstep/base/number.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/launch/jobs/rank_origin.h"

namespace lockstep::inline internal {
namespace {

/// The launcher's pid; for ranks that are threads, their process. 0: there is none.
pid_t launcher_of(const RankProcess& process) {
  if (process.is_thread) return process.pid;
  return process.ancestors.empty() ? 0 : process.ancestors.front();
}

/// A key that ranks of one job share, and no other job that runs at the same time.
std::string key_of(const RankOrigin& origin, const RankProcess& process) {
  std::string place = fmt::format("session {}", process.session);
  if (launcher_of(process) > 0) place = fmt::format("parent {}", launcher_of(process));
  if (!origin.endpoint.empty()) place = "endpoint " + origin.endpoint;
  // Each container has a loopback of its own.
  if (is_loopback(origin.endpoint.substr(0, origin.endpoint.rfind(':')))) place += process.network;
  if (!origin.name.empty()) place = "name " + origin.name;
  return fmt::format("{} {} {}", origin.launcher, process.size, place);
}

pid_t common_launcher(const std::vector<RankProcess>& ranks) {
  const pid_t first = launcher_of(ranks.front());
  const bool all = std::all_of(ranks.begin(), ranks.end(), [&](const RankProcess& process) {
    return launcher_of(process) == first;
  });
  return all ? first : 0;
}

/// An id from the launcher's process, if there is one, else from the first rank's.
std::string made_up_id(const RankOrigin& origin, const OtherJob& job) {
  std::string word = origin.launcher.substr(0, origin.launcher.find_first_of(" (")) + "-";
  if (origin.launcher.starts_with("environment")) word = "env-";
  if (origin.launcher == "none") word = "";
  const std::string port = origin.endpoint.substr(origin.endpoint.rfind(':') + 1);
  if (all_digits(port)) return word + port;
  const bool by_parent = job.parent > 0 && is_process_of_one_job(origin.launcher);
  return word + std::to_string(by_parent ? job.parent : job.ranks.front().pid);
}

std::vector<RankSteps> reports_of(const OtherJob& job) {
  std::vector<RankSteps> reports;
  for (const RankProcess& process : job.ranks) {
    if (process.steps) reports.push_back(*process.steps);
  }
  return reports;
}

void name_jobs(std::vector<OtherJob>* jobs, const std::vector<RankOrigin>& origins) {
  std::set<std::string> used;
  std::set<size_t> shared;
  for (size_t i = 0; i < jobs->size(); ++i) {
    OtherJob& job = (*jobs)[i];
    job.name = origins[i].name;
    job.id = job.name.empty() ? made_up_id(origins[i], job) : job.name;
    if (used.insert(job.id).second) continue;
    job.id += fmt::format(".{}", job.ranks.front().pid);
    used.insert(job.id);
    for (size_t before = 0; before <= i; ++before) {
      if ((*jobs)[before].name == job.name) shared.insert(before);
    }
  }
  for (const size_t place : shared) (*jobs)[place].name.clear();
}

}  // namespace

double OtherJob::began() const {
  return std::min_element(ranks.begin(), ranks.end(),
                          [](const auto& a, const auto& b) { return a.began < b.began; })
      ->began;
}

bool OtherJob::stopped() const {
  return std::all_of(ranks.begin(), ranks.end(), [](const auto& each) { return each.stopped; });
}

std::vector<OtherJob> other_jobs(std::vector<RankProcess> ranks) {
  std::sort(ranks.begin(), ranks.end(), [](const RankProcess& a, const RankProcess& b) {
    return std::tie(a.began, a.pid, a.rank) < std::tie(b.began, b.pid, b.rank);
  });
  std::vector<OtherJob> jobs;
  std::vector<RankOrigin> origins;
  std::map<std::tuple<std::string, int, int>, int> copies;  // processes of a rank of a key
  std::map<std::pair<std::string, int>, size_t> places;     // index of a key's nth job
  for (RankProcess& process : ranks) {
    const RankOrigin origin = origin_of(process);
    const std::string key = key_of(origin, process);
    const int copy = copies[{key, process.rank, process.size}]++;
    const auto [place, is_new] = places.insert({{key, copy}, jobs.size()});
    if (is_new) {
      OtherJob job;
      job.launcher = origin.launcher;
      job.size = process.size;
      job.node_rank = origin.node_rank;
      job.num_nodes = origin.num_nodes;
      job.restart_count = origin.restart_count;
      jobs.push_back(std::move(job));
      origins.push_back(origin);
    }
    jobs[place->second].ranks.push_back(std::move(process));
  }
  for (OtherJob& job : jobs) {
    std::sort(job.ranks.begin(), job.ranks.end(),
              [](const RankProcess& a, const RankProcess& b) { return a.rank < b.rank; });
    job.parent = common_launcher(job.ranks);
    const bool all_here = job.ranks.size() == static_cast<size_t>(job.size);
    if (!all_here || job.num_nodes != kUnknownNumber) continue;
    job.node_rank = 0;
    job.num_nodes = 1;
  }
  name_jobs(&jobs, origins);
  return jobs;
}

std::vector<RankProcess> ranks_of_others(std::vector<RankProcess> ranks,
                                         const std::vector<JobEntry>& agents,
                                         const Environment& environment, double now) {
  constexpr double kUntilEntered = 2;
  const auto is_worker = [&](const RankProcess& process) {
    const std::string run = value_in(process.environment, "LOCKSTEP_RUN_ID");
    const auto& above = process.ancestors;
    const bool of_listed = std::any_of(agents.begin(), agents.end(), [&](const JobEntry& agent) {
      return run == agent.run_id || std::find(above.begin(), above.end(), agent.pid) != above.end();
    });
    return of_listed || (!run.empty() && now - process.began < kUntilEntered);
  };
  const std::string own_list = value_in(environment, "LOCKSTEP_JOBS_DIR");
  std::erase_if(ranks, [&](const RankProcess& process) {
    return value_in(process.environment, "LOCKSTEP_JOBS_DIR") != own_list || is_worker(process);
  });
  return ranks;
}

const OtherJob* find_other_job(const std::vector<OtherJob>& jobs, const std::string& name) {
  const auto is_meant = [&](const OtherJob& job) {
    const bool by_parent = job.parent > 0 && is_process_of_one_job(job.launcher);
    return job.id == name || (by_parent && std::to_string(job.parent) == name) ||
           std::any_of(job.ranks.begin(), job.ranks.end(), [&](const RankProcess& process) {
             return std::to_string(process.pid) == name;
           });
  };
  const auto found = std::find_if(jobs.begin(), jobs.end(), is_meant);
  return found == jobs.end() ? nullptr : &*found;
}

std::string how_to_end(const OtherJob& job) {
  constexpr std::string_view kSlurm = "slurm-";
  if (job.launcher == "srun" && job.name.starts_with(kSlurm))
    return "scancel " + job.name.substr(kSlurm.size());
  if (job.parent > 0 && is_process_of_one_job(job.launcher))
    return fmt::format("Ctrl-C there, or kill {}", job.parent);
  std::set<pid_t> processes;
  for (const RankProcess& process : job.ranks) processes.insert(process.pid);
  return fmt::format("kill {}", fmt::join(processes, " "));
}

std::vector<OtherJob> other_jobs_here(const FindRanks& find, const std::vector<JobEntry>& running) {
  try {
    auto jobs =
        other_jobs(ranks_of_others(find(), running, this_environment(), seconds_since_1970()));
    for (OtherJob& job : jobs) job.progress = progress_of(reports_of(job));
    return jobs;
  } catch (const Error& error) {
    log_warn(fmt::format("jobs that other launchers started are not known: {}", error.what()));
    return {};
  }
}

void refuse_other_job(const std::string& verb, const std::string& name, const FindRanks& find,
                      const std::vector<JobEntry>& running, const Hint& hint) {
  const auto jobs = other_jobs_here(find, running);
  const OtherJob* const job = find_other_job(jobs, name);
  if (job == nullptr) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: {} started job {}, not lockstep run; {}", verb,
                          launcher_in_words(job->launcher), without_controls(job->id), hint(*job)));
}

}  // namespace lockstep::inline internal
