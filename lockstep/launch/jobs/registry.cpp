#include "lockstep/launch/jobs/registry.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "lockstep/base/file.h"
#include "lockstep/base/process_handle.h"
#include "lockstep/base/text.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

constexpr char kEnding[] = ".json";

enum class Folder { kMissing, kOwn, kForeign };

/// One look: between two, others may remove the folder and make it again.
Folder kind_of(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0)
    return errno == ENOENT ? Folder::kMissing : Folder::kForeign;
  const bool own =
      S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() && (status.st_mode & 022) == 0;
  return own ? Folder::kOwn : Folder::kForeign;
}

/// A descriptor for PATH/NAME. The last agent to end removes PATH, and so does a listing that finds
/// no agents, between any two calls here. Then PATH is made again.
UniqueFd open_in(const std::string& path, const std::string& name) {
  const std::string file = path + "/" + name;
  for (int attempt = 0; attempt < 100; ++attempt) {
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return UniqueFd();
    const Folder kind = kind_of(path);
    if (kind == Folder::kForeign) return UniqueFd();
    if (kind == Folder::kMissing) continue;
    UniqueFd opened(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (opened || errno != ENOENT) return opened;
  }
  return UniqueFd();
}

std::string parent_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

std::optional<JobEntry> read_entry(const std::filesystem::path& file) {
  try {
    return job_entry_from_json(read_file(file, 1 << 20));
  } catch (const Error&) {
    return std::nullopt;  // it is just ending
  }
}

/// The entry of an agent in another PID namespace, or of another host, that holds a lock while it
/// lives; nothing once the lock is free.
std::optional<JobEntry> take_locked(const std::filesystem::path& file) {
  auto entry = read_entry(file);
  if (!entry || !entry->locked) return std::nullopt;
  const UniqueFd fd(::open(file.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return std::nullopt;
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) {
    ::unlink(file.c_str());
    return std::nullopt;
  }
  return entry;
}

bool is_linked(const UniqueFd& file) {
  struct stat status {};
  return file && ::fstat(file.get(), &status) == 0 && status.st_nlink > 0;
}

/// sudo, srun or a container may have handed on the XDG_RUNTIME_DIR of another user or host.
std::string folder_for_own_files(const Environment& environment) {
  const auto value = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? "" : found->second;
  };
  for (const std::string& folder :
       {value("XDG_RUNTIME_DIR"), std::string("/tmp"), value("TMPDIR")}) {
    if (!folder.empty() && ::access(folder.c_str(), W_OK | X_OK) == 0) return folder;
  }
  return "/tmp";
}

/// `unsure`: also list agents whose PID namespace is unknown.
void list_in(const std::string& registry, const ProcessKey& own, bool unsure,
             std::vector<JobEntry>* jobs) {
  if (!is_own_folder(registry)) return;
  std::error_code failure;
  for (std::filesystem::directory_iterator it(registry, failure), end; !failure && it != end;
       it.increment(failure)) {
    const auto key = ProcessKey::parse(it->path().stem());
    if (!key) continue;
    switch (liveness(*key, own)) {
      case Liveness::kAlive:
        if (auto entry = read_entry(it->path())) jobs->push_back(std::move(*entry));
        break;
      case Liveness::kDead:
        ::unlink(it->path().c_str());
        break;
      case Liveness::kElsewhere:
        if (auto entry = take_locked(it->path()); entry && unsure)
          jobs->push_back(std::move(*entry));
        break;
    }
  }
  ::rmdir(registry.c_str());  // if that was the last
}

std::string names_of(const std::vector<JobEntry>& jobs) {
  std::set<std::string> names;
  for (const JobEntry& job : jobs) names.insert(job.run_id);
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

bool is_one_run(const std::vector<JobEntry>& jobs) {
  return std::all_of(jobs.begin(), jobs.end(),
                     [&](const JobEntry& job) { return job.run_id == jobs[0].run_id; });
}

template <class Matches>
std::vector<JobEntry> where(const std::vector<JobEntry>& jobs, const Matches& matches) {
  std::vector<JobEntry> found;
  std::copy_if(jobs.begin(), jobs.end(), std::back_inserter(found), matches);
  return found;
}

}  // namespace

bool is_own_folder(const std::string& path) {
  return kind_of(path) == Folder::kOwn;
}

std::vector<std::string> registry_folders(const Environment& environment) {
  const auto given = environment.find("LOCKSTEP_JOBS_DIR");
  if (given != environment.end() && !given->second.empty()) return {given->second};
  std::vector<std::string> folders;
  const auto runtime = environment.find("XDG_RUNTIME_DIR");
  if (runtime != environment.end() && !runtime->second.empty()) {
    folders.push_back(runtime->second + "/lockstep");
  }
  folders.push_back(fmt::format("/tmp/lockstep-{}", ::geteuid()));
  return folders;
}

JobFile::JobFile(const std::vector<std::string>& registries) {
  const std::string name = own_key().text() + kEnding;
  for (const std::string& registry : registries) candidates_.push_back(registry + "/" + name);
}

JobFile::~JobFile() {
  remove();
}

void JobFile::remove() {
  if (path_.empty()) return;
  ::unlink(path_.c_str());
  ::rmdir(parent_of(path_).c_str());  // if this was the last
  path_.clear();
  file_.reset();
}

void JobFile::write(JobEntry entry) {
  if (!is_linked(file_)) open_first();
  if (!file_) return;
  entry.locked = locked_;
  const std::string text = to_json(entry);
  // The write is short; a reader takes a half-written entry for an agent that is just starting.
  if (::ftruncate(file_.get(), 0) != 0) return;
  [[maybe_unused]] const ssize_t put = ::pwrite(file_.get(), text.data(), text.size(), 0);
}

void JobFile::open_first() {
  for (const std::string& path : candidates_) {
    file_ = open_in(parent_of(path), path.substr(path.rfind('/') + 1));
    if (!file_) continue;
    path_ = path;
    locked_ = ::flock(file_.get(), LOCK_EX | LOCK_NB) == 0;
    return;
  }
}

std::string own_file_base(const Environment& environment) {
  const std::string folder = folder_for_own_files(environment);
  std::array<uint8_t, 8> random{};
  // Other users may write to /tmp, so the name must be unpredictable.
  [[maybe_unused]] const ssize_t got = ::getrandom(random.data(), random.size(), 0);
  return fmt::format("{}/lockstep-{}-{}", folder, ::getpid(), hex_digits(random));
}

std::vector<JobEntry> list_jobs(const std::vector<std::string>& registries,
                                WithoutProc without_proc) {
  std::vector<JobEntry> jobs;
  const ProcessKey own = own_key();
  const bool unsure = own.started.empty() && without_proc == WithoutProc::kAllThatHoldTheirLocks;
  for (const std::string& registry : registries) list_in(registry, own, unsure, &jobs);
  std::sort(jobs.begin(), jobs.end(), [](const JobEntry& a, const JobEntry& b) {
    return std::tie(a.began, a.pid) < std::tie(b.began, b.pid);
  });
  return jobs;
}

bool HeldAgent::ended(int wait_ms) const {
  return !process || process.ended(wait_ms);
}

std::vector<JobEntry> running_jobs(WithoutProc without_proc) {
  auto jobs = list_jobs(registry_folders(this_environment()), without_proc);
  for (JobEntry& job : jobs) {
    job.progress = progress_of(read_progress_memory(job.steps));
    job.stopped = is_stopped(job.pid);
  }
  return jobs;
}

std::vector<HeldAgent> hold_agents(std::vector<JobEntry> jobs) {
  std::vector<HeldAgent> agents;
  for (JobEntry& job : jobs) {
    ProcessHandle process(job.pid);
    agents.push_back({std::move(job), std::move(process)});
  }
  // List again: an agent that is still alive is the process that was opened.
  const auto alive = running_jobs();
  std::erase_if(agents, [&](const HeldAgent& agent) {
    return std::none_of(alive.begin(), alive.end(),
                        [&](const JobEntry& job) { return job.pid == agent.job.pid; });
  });
  return agents;
}

bool is_exactly_named(const std::vector<JobEntry>& jobs, const std::string& name) {
  return std::any_of(jobs.begin(), jobs.end(), [&](const JobEntry& job) {
    return job.run_id == name || std::to_string(job.pid) == name;
  });
}

bool is_named(const std::vector<JobEntry>& jobs, const std::string& name) {
  return std::any_of(jobs.begin(), jobs.end(), [&](const JobEntry& job) {
    return job.run_id.rfind(name, 0) == 0 || std::to_string(job.pid) == name;
  });
}

std::vector<JobEntry> find_jobs(const std::vector<JobEntry>& jobs, const std::string& name) {
  if (jobs.empty()) throw Error(ErrorCode::kNotFound, "no job of this user runs on this host");
  if (name.empty()) {
    if (is_one_run(jobs)) return jobs;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("several jobs run here, say which: {}", names_of(jobs)));
  }
  auto found = where(jobs, [&](const JobEntry& job) {
    return job.run_id == name || std::to_string(job.pid) == name;
  });
  if (!found.empty()) return found;
  found = where(jobs, [&](const JobEntry& job) { return job.run_id.rfind(name, 0) == 0; });
  if (!found.empty() && is_one_run(found)) return found;
  if (!found.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("'{}' may mean each of {}", name, names_of(found)));
  }
  std::vector<std::string> names;
  for (const JobEntry& job : jobs) names.push_back(job.run_id);
  throw Error(ErrorCode::kNotFound, fmt::format("no job '{}' runs here{} (there are: {})", name,
                                                did_you_mean(name, names), names_of(jobs)));
}

}  // namespace lockstep::inline internal
