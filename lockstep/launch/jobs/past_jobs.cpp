#include "lockstep/launch/jobs/past_jobs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <tuple>
#include <utility>

#include "lockstep/base/file.h"
#include "lockstep/base/folder.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/error.h"
#include "lockstep/launch/jobs/registry.h"

namespace lockstep::inline internal {
namespace {

namespace fs = std::filesystem;
constexpr char kJsonEnding[] = ".json";
constexpr std::string_view kWithoutFiles = ".no_files.json";

std::vector<fs::path> entries_in(const std::string& folder) {
  std::vector<fs::path> files;
  std::error_code failure;
  for (fs::directory_iterator it(folder, failure), end; !failure && it != end;
       it.increment(failure)) {
    if (it->path().extension() == kJsonEnding) files.push_back(it->path());
  }
  return files;
}

/// Makes the folder and missing parents, writable by this user only, whatever the umask.
void make_own_folder(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0700) == 0 || errno != ENOENT || !folder.has_relative_path()) return;
  make_own_folder(folder.parent_path());
  ::mkdir(folder.c_str(), 0700);
}

void forget_the_oldest(std::vector<fs::path> files) {
  if (files.size() <= kMostPastJobs) return;
  const auto written = [](const fs::path& file) {
    std::error_code failure;
    return fs::last_write_time(file, failure);
  };
  std::sort(files.begin(), files.end(),
            [&](const fs::path& a, const fs::path& b) { return written(a) > written(b); });
  for (size_t i = kMostPastJobs; i < files.size(); ++i) {
    std::error_code failure;
    fs::remove(files[i], failure);
  }
}

/// Short runs without files are counted apart, so that they cannot displace runs with files.
void forget_the_oldest(const std::string& folder) {
  auto with_files = entries_in(folder);
  const auto without = std::stable_partition(
      with_files.begin(), with_files.end(),
      [](const fs::path& file) { return !file.string().ends_with(kWithoutFiles); });
  forget_the_oldest(std::vector<fs::path>(without, with_files.end()));
  with_files.erase(without, with_files.end());
  forget_the_oldest(std::move(with_files));
}

}  // namespace

std::string past_jobs_folder(const Environment& environment) {
  const std::string given = value_in(environment, "LOCKSTEP_JOBS_DIR");
  if (!given.empty()) return given + "/past";
  const std::string state = value_in(environment, "XDG_STATE_HOME");
  if (!state.empty()) return state + "/lockstep/past";
  const std::string home = value_in(environment, "HOME");
  std::error_code failure;  // service accounts may have a home that does not exist
  return fs::is_directory(home, failure) ? home + "/.local/state/lockstep/past" : "";
}

void remember_job(const std::string& folder, const JobEntry& entry) {
  if (folder.empty()) return;
  make_own_folder(fs::path(folder).parent_path());
  if (!is_own_folder(fs::path(folder).parent_path())) return;
  ::mkdir(folder.c_str(), 0700);
  if (!is_own_folder(folder)) return;
  try {
    const fs::path file =
        fs::path(folder) /
        (own_key().text() + std::string(entry.log_folder.empty() ? kWithoutFiles : kJsonEnding));
    // Without a sync: the agent's loop must not wait for a busy disk.
    const fs::path unnamed = file.string() + ".new";
    const UniqueFd fd(::open(unnamed.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!fd) return;
    const std::string text = to_json(entry);
    write_all(fd.get(), text.data(), text.size(), unnamed.string());
    std::error_code failure;
    fs::rename(unnamed, file, failure);
  } catch (const Error&) {  // a full disk: the run matters more than its entry
    return;
  }
  forget_the_oldest(folder);
}

std::string why_not_remembered(const std::string& folder) {
  if (folder.empty()) return "there is no home folder";
  // A missing folder would be made in its nearest existing parent.
  const fs::path there = nearest_existing(folder);
  return ::access(there.c_str(), W_OK | X_OK) == 0 ? "" : folder + " cannot be written";
}

std::vector<JobEntry> past_jobs(const std::string& folder) {
  std::vector<JobEntry> jobs;
  for (const fs::path& file : entries_in(folder)) {
    try {
      auto entry = job_entry_from_json(read_file(file, 1 << 20));
      std::error_code failure;
      if (!entry) continue;
      if (entry->log_folder.empty() || fs::is_directory(entry->attempt_folder, failure))
        jobs.push_back(*entry);
    } catch (const Error&) {  // it was removed just now
    }
  }
  std::sort(jobs.begin(), jobs.end(), [](const JobEntry& a, const JobEntry& b) {
    return std::tie(b.began, a.pid) < std::tie(a.began, b.pid);
  });
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

std::vector<JobEntry> find_past_job(const std::vector<JobEntry>& past, const std::string& name) {
  if (name.empty()) return {};
  auto newest = std::find_if(past.begin(), past.end(),
                             [&](const JobEntry& job) { return job.run_id == name; });
  if (newest == past.end()) {
    newest = std::find_if(past.begin(), past.end(),
                          [&](const JobEntry& job) { return job.run_id.rfind(name, 0) == 0; });
  }
  std::vector<JobEntry> found;
  for (auto job = newest; job != past.end(); ++job) {
    const bool same_run = job->run_id == newest->run_id && job->num_nodes == newest->num_nodes;
    const bool other_host = std::none_of(found.begin(), found.end(), [&](const JobEntry& each) {
      return each.node_rank == job->node_rank;
    });
    if (same_run && other_host) found.push_back(*job);
  }
  return found;
}

}  // namespace lockstep::inline internal
