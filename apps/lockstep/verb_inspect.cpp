// lockstep inspect ID|DIR|PID ...: the last operations of the ranks of a running or dead job.

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "apps/lockstep/log_folders.h"
#include "apps/lockstep/ranks_here.h"
#include "apps/lockstep/record_writers.h"
#include "apps/lockstep/verbs.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/file.h"
#include "lockstep/base/host_name.h"
#include "lockstep/base/log.h"
#include "lockstep/base/number.h"
#include "lockstep/base/options.h"
#include "lockstep/base/proc.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/flight/record.h"
#include "lockstep/comm/flight/ring.h"
#include "lockstep/comm/flight/stack.h"
#include "lockstep/error.h"
#include "lockstep/launch/jobs/other_jobs.h"
#include "lockstep/launch/jobs/past_jobs.h"
#include "lockstep/launch/jobs/registry.h"

namespace lockstep::app {
namespace {

namespace fs = std::filesystem;

/// The readable entries of `folder`: none if it is gone, and only a part if it vanishes meanwhile,
/// as the folders of dying processes do.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code failure;
  for (fs::directory_iterator it(folder, failure), end; !failure && it != end;
       it.increment(failure)) {
    paths.push_back(it->path());
  }
  return paths;
}

/// The records, and the failures to read one: a broken file or a dying rank does not cost the table
/// of the others.
struct Found {
  std::vector<FlightRecord> records;
  std::vector<std::string> failures;
  std::set<int> unseen;  ///< Ranks of this host that may be alive or dead: see RecordWriters.

  /// Adds the record at `path`; returns it, or null if there is none.
  FlightRecord* load(const fs::path& path, const std::string& what) {
    try {
      const std::string bytes = read_file(path);
      records.push_back(read_flight(std::as_bytes(std::span(bytes.data(), bytes.size())), what));
      return &records.back();
    } catch (const std::exception& error) {
      failures.emplace_back(error.what());
      return nullptr;
    }
  }
};

/// The parent of each visible process.
std::map<int, int> parents() {
  std::map<int, int> parents;
  for (const pid_t pid : processes()) {
    const auto stat = stat_fields(pid);
    if (stat.size() > 1) parents[pid] = std::stoi(stat[1]);
  }
  return parents;
}

bool descends(int pid, int ancestor, const std::map<int, int>& parents) {
  for (int steps = 0; steps < 64; ++steps) {
    if (pid == ancestor) return true;
    const auto parent = parents.find(pid);
    if (parent == parents.end()) return false;
    pid = parent->second;
  }
  return false;
}

void add_records_in(const fs::path& folder, Found& found) {
  RecordWriters writers;
  for (const auto& path : entries_of(folder)) {
    if (path.extension() != kFlightSuffix) continue;
    FlightRecord* const record = found.load(path, path.string());
    if (record == nullptr || record->host != host_name()) continue;
    if (!writers.look_at(*record, path)) found.unseen.insert(record->rank);
  }
}

/// Adds records of these processes and their descendants: one may be a worker or the agent that
/// started it. Ranks of a host have each other's recorders open, so the records of dead ranks are
/// there too, each once.
void add_records_of(const std::set<pid_t>& roots, Found& found) {
  const auto family = parents();
  const auto is_meant = [&](int pid) {
    return std::any_of(roots.begin(), roots.end(),
                       [&](pid_t root) { return descends(pid, root, family); });
  };
  RecordWriters writers;
  std::set<std::pair<dev_t, ino_t>> seen;
  for (const auto& [each, parent] : family) {
    if (!is_meant(each)) continue;
    for (const auto& descriptor : entries_of(fmt::format("/proc/{}/fd", each))) {
      struct stat about {};
      std::error_code failure;
      if (!is_recorder(fs::read_symlink(descriptor, failure).string()) ||
          ::stat(descriptor.c_str(), &about) != 0 ||
          !seen.insert({about.st_dev, about.st_ino}).second) {
        continue;
      }
      FlightRecord* const record = found.load(descriptor, fmt::format("process {}", each));
      if (record == nullptr) continue;
      if (!writers.look_at(*record, descriptor)) {
        found.unseen.insert(record->rank);
      } else if (record->alive && !is_meant(record->pid)) {
        found.records.pop_back();
      }
    }
  }
}

/// Adds records of a folder with recorders, or of the newest attempt below a folder of --log_dir.
void add_records_below(const fs::path& folder, Found& found) {
  const auto before = found.records.size() + found.failures.size();
  add_records_in(folder, found);
  if (found.records.size() + found.failures.size() > before) return;
  const auto newest = newest_attempt(folder);
  for (const auto& attempt : newest.folders) {
    log_info(fmt::format("newest attempt below {}: {}", folder.string(), attempt.string()));
    add_records_in(attempt, found);
  }
  for (const auto& other : newest.others) log_info(fmt::format("not shown: {}", other.string()));
}

/// Adds records of another launcher's job with that ID. False: there is none.
bool add_records_of_other(const std::string& id, const std::vector<JobEntry>& running,
                          Found& found) {
  const auto jobs = other_jobs_here(ranks_here, running);
  const OtherJob* const job = find_other_job(jobs, id);
  if (job == nullptr) return false;
  std::set<pid_t> processes;  // a rank may be a thread
  for (const RankProcess& rank : job->ranks) processes.insert(rank.pid);
  add_records_of(processes, found);
  return true;
}

void add_records_of_running(const std::vector<JobEntry>& running, const std::string& id,
                            Found& found) {
  std::set<pid_t> agents;
  for (const JobEntry& job : find_jobs(running, id)) agents.insert(job.pid);
  add_records_of(agents, found);
}

/// Adds records of the run with exactly that ID, which may be a number. False: there is none.
bool add_records_of_numbered_run(const std::string& id, Found& found) {
  const auto running = running_jobs();
  const auto has_id = [&](const auto& job) { return job.run_id == id; };
  if (std::any_of(running.begin(), running.end(), has_id)) {
    add_records_of_running(running, id, found);
    return true;
  }
  const auto others = other_jobs_here(ranks_here, running);
  return std::any_of(others.begin(), others.end(), [&](const auto& job) { return job.id == id; }) &&
         add_records_of_other(id, running, found);
}

/// Adds records of the run with that ID, else of another launcher's job with it, else of the run
/// whose ID begins so. Otherwise it takes the last finished run with files. False: there is none.
bool add_records_of_run(const std::string& id, Found& found) {
  const auto running = running_jobs();
  if (!is_exactly_named(running, id) && add_records_of_other(id, running, found)) return true;
  if (is_named(running, id)) {
    add_records_of_running(running, id, found);
    return true;
  }
  auto past = find_past_job(past_jobs(past_jobs_folder(this_environment())), id);
  std::erase_if(past, [](const JobEntry& job) { return job.log_folder.empty(); });
  for (const JobEntry& job : past) {
    log_info(fmt::format("run {} is over; its last attempt: {}", job.run_id, job.attempt_folder));
    add_records_in(job.attempt_folder, found);
  }
  return !past.empty();
}

void add_records_for(const std::string& target, Found& found) {
  if (fs::is_directory(target)) return add_records_below(target, found);
  if (!all_digits(target)) {
    if (add_records_of_run(target, found)) return;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("'{}' is neither a folder with flight recorders (lockstep run "
                            "--log_dir makes one), nor the number of a process, nor the ID of a "
                            "run that runs here (lockstep ps) or had a --log_dir",
                            target));
  }
  if (add_records_of_numbered_run(target, found)) return;
  int failure = ESRCH;
  if (target.size() <= 9) failure = ::kill(std::stoi(target), 0) == 0 ? 0 : errno;
  if (failure == EPERM) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("process {} belongs to another user", target));
  }
  if (failure != 0) {
    throw Error(ErrorCode::kNotFound, fmt::format("there is no process {}", target));
  }
  add_records_of({std::stoi(target)}, found);
}

/// Adds the stacks of the odd ranks that are visible on this host, one each; the stacks of waiting
/// ranks explain nothing.
void add_stacks(std::vector<FlightRecord>& records, int64_t now_ns) {
  const auto ranks = odd_ranks(records, now_ns);
  for (FlightRecord& record : records) {
    if (record.host != host_name() || record.process.empty()) continue;
    if (std::find(ranks.begin(), ranks.end(), record.rank) == ranks.end()) continue;
    record.stack = to_string(stack_of(record.pid, std::chrono::seconds(2)));
  }
}

struct InspectRequest {
  bool help = false;
};

HelpPage inspect_help(const std::vector<Option<InspectRequest>>& options) {
  return {{{"lockstep inspect ID|DIR|PID...", ""}},
          "Shows the last operations of a job's ranks, how long they have waited, and the ranks "
          "that differ. For a running job give its ID (lockstep ps), or the process of `lockstep "
          "run` or of a rank. For a finished job give its ID, the folder that --log_dir named (its "
          "newest attempt is shown), or one attempt_N in it.",
          {{"", {{"ID|DIR|PID", "runs, folders of --log_dir, processes"}}},
           help_group(OptionGroup<InspectRequest>{"", options})},
          ""};
}

}  // namespace

int verb_inspect(const std::vector<std::string>& args) {
  InspectRequest request;
  const std::vector<Option<InspectRequest>> options = {help_option<InspectRequest>()};
  const auto targets = read_request(args, options, "lockstep inspect", request);
  if (request.help) return print_help(inspect_help(options));
  if (targets.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                "lockstep inspect: which job? ID|DIR|PID is needed (lockstep ps lists jobs)");
  }
  Found found;
  const int64_t now_ns = ns_since_1970();
  for (const std::string& target : targets) add_records_for(target, found);
  for (const std::string& failure : found.failures) log_warn(failure);
  if (!found.unseen.empty()) {
    log_info(
        fmt::format("{} may be alive or dead: processes of other containers and users are not "
                    "visible here",
                    rank_words({found.unseen.begin(), found.unseen.end()})));
  }
  if (found.records.empty()) {
    throw Error(ErrorCode::kNotFound,
                fmt::format("{}: {}", targets.front(),
                            found.failures.empty() ? "no rank there has made a process group yet"
                                                   : "no flight recorder there can be read"));
  }
  add_stacks(found.records, now_ns);
  fmt::print("{}", flight_table(std::move(found.records), now_ns));
  return 0;
}

}  // namespace lockstep::app
