#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/env.h"
#include "lockstep/base/options.h"
#include "lockstep/base/text.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/error.h"
#include "lockstep/launch/jobs/job_control.h"
#include "lockstep/launch/jobs/past_jobs.h"
#include "lockstep/launch/jobs/registry.h"
#include "lockstep/launch/process/line_prefix.h"
#include "lockstep/launch/process/line_splitter.h"

namespace lockstep::inline internal {
namespace {

struct LogsRequest {
  bool follow = false, help = false;
  std::vector<int> ranks;  ///< Empty: all.
  size_t tail = 0;         ///< 0: from the beginning.
};

const OptionGroup<LogsRequest>& logs_options() {
  using R = LogsRequest;
  using Text = const std::string&;
  static const OptionGroup<R> kOptions = {
      "",
      {{"follow", 'f', OptionKind::kFlag, "", "go on until the job ends", set_flag<&R::follow>},
       {"rank", 0, OptionKind::kValue, "R,R", "of these ranks only",
        [](R& request, Text value, Text what) {
          request.ranks.clear();
          for (const std::string& rank : split(value, ',')) {
            if (rank.empty()) continue;
            request.ranks.push_back(static_cast<int>(parse_int(rank, 0, 1 << 30, what)));
          }
        }},
       {"tail", 0, OptionKind::kValue, "N", "begin with the last N lines of each",
        [](R& request, Text value, Text what) {
          request.tail = static_cast<size_t>(parse_int(value, 0, 1 << 30, what));
        }},
       help_option<R>()}};
  return kOptions;
}

HelpPage logs_help() {
  return {
      {{"lockstep logs [-f] [--rank R,R] [--tail N] [ID|PID]", ""}},
      "Shows the workers' output in a job's --log_dir: of a running job, or, by its ID, of a past "
      "one.",
      {help_group(logs_options())},
      ""};
}

std::vector<int> local_ranks_of(const JobEntry& job, const std::vector<int>& wanted) {
  std::vector<int> ranks;
  for (int local = 0; local < job.local_size; ++local) {
    const bool any =
        wanted.empty() || std::count(wanted.begin(), wanted.end(), job.first_rank + local) > 0;
    if (any) ranks.push_back(local);
  }
  return ranks;
}

/// The files that a job's workers have written so far.
///
/// Reads ATTEMPT_FOLDER/LOCAL_RANK/{stdout,stderr}.log from where it stopped before.
class LogReader {
 public:
  explicit LogReader(std::string attempt_folder) : folder_(std::move(attempt_folder)) {}

  struct Line {
    int local_rank = 0;
    int stream = 1;
    std::string text;
  };

  using TakeLine = std::function<void(const Line& line)>;
  /// Passes the lines added since the last call to `take`: rank by rank, stdout first. `last`: also
  /// a line without a newline. Needs little memory for files of any length.
  void read(const std::vector<int>& local_ranks, bool last, const TakeLine& take);

  const std::string& folder() const { return folder_; }

 private:
  struct File {
    UniqueFd fd;
    LineSplitter splitter;
  };
  void read_file(int local_rank, int stream, bool last, const TakeLine& take);

  std::string folder_;
  std::map<std::pair<int, int>, File> files_;
};

void LogReader::read(const std::vector<int>& local_ranks, bool last, const TakeLine& take) {
  for (const int local_rank : local_ranks) {
    for (const int stream : {1, 2}) read_file(local_rank, stream, last, take);
  }
}

void LogReader::read_file(int local_rank, int stream, bool last, const TakeLine& take) {
  File& file = files_[{local_rank, stream}];
  if (!file.fd) {
    const auto path =
        fmt::format("{}/{}/{}.log", folder_, local_rank, stream == 1 ? "stdout" : "stderr");
    file.fd.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.fd) return;  // this stream has no file, or none yet
  }
  std::string buffer(64 << 10, '\0');
  for (ssize_t got = 0; (got = ::read(file.fd.get(), buffer.data(), buffer.size())) > 0;) {
    for (auto& text :
         file.splitter.feed(std::string_view(buffer).substr(0, static_cast<size_t>(got)))) {
      take({local_rank, stream, std::move(text)});
    }
  }
  if (!last) return;
  std::string rest = file.splitter.finish();
  if (!rest.empty()) take({local_rank, stream, std::move(rest)});
}

class Follower {
 public:
  /// `agent`: null for a past job.
  Follower(const JobEntry& job, const HeldAgent* agent, std::vector<int> wanted, size_t tail)
      : agent_(agent), wanted_(std::move(wanted)), reader_(""), tail_(tail) {
    style_.color =
        wants_color(::isatty(STDOUT_FILENO) == 1, std::getenv("NO_COLOR"), std::getenv("TERM"));
    take(job);
  }

  void show(bool last) {
    std::map<int, std::deque<std::string>> tails;
    reader_.read(ranks_, last, [&](const LogReader::Line& line) {
      if (tail_ == 0) return put(line.local_rank, line.text);
      auto& tail = tails[line.local_rank];
      tail.push_back(line.text);
      if (tail.size() > tail_) tail.pop_front();
    });
    for (const auto& [local_rank, tail] : tails) {
      for (const std::string& text : tail) put(local_rank, text);
    }
    tail_ = 0;
    std::fflush(stdout);
  }

  /// Waits a moment; true when the job's agent has ended.
  bool wait() {
    if (agent_ == nullptr || agent_->ended(100)) return true;
    for (const JobEntry& job : running_jobs()) {
      if (job.pid != agent_->job.pid || job.attempt_folder == reader_.folder()) continue;
      show(true);  // restarted: the rest of that attempt, then the next one
      take(job);
    }
    return false;
  }

 private:
  /// Begins an attempt: after a restart the host's ranks may differ.
  void take(const JobEntry& job) {
    reader_ = LogReader(job.attempt_folder);
    ranks_ = local_ranks_of(job, wanted_);
    style_.first_rank = job.first_rank;
    style_.world_size = job.world_size;
    style_.host = job.num_nodes > 1 ? job.host : "";
    style_.host_width = style_.host.size();
  }

  void put(int local_rank, const std::string& text) const {
    std::puts((line_prefix(style_, {local_rank}) + text).c_str());
  }

  const HeldAgent* agent_;
  const std::vector<int> wanted_;
  LogReader reader_;
  std::vector<int> ranks_;
  size_t tail_;
  PrefixStyle style_;
};

/// Agents of the past job with that ID; empty: there is none.
std::vector<JobEntry> past_job(const std::string& name, const std::vector<JobEntry>& running) {
  if (is_named(running, name)) return {};
  return find_past_job(past_jobs(past_jobs_folder(this_environment())), name);
}

/// As find_jobs(), with a message that also covers past runs.
std::vector<JobEntry> find_running(const std::vector<JobEntry>& running, const std::string& name) {
  try {
    return find_jobs(running, name);
  } catch (const Error& error) {
    const std::string why = why_not_remembered(past_jobs_folder(this_environment()));
    if (error.code() != ErrorCode::kNotFound || name.empty()) throw;
    if (why.empty()) {
      throw Error(ErrorCode::kNotFound,
                  fmt::format("{}, and none that is over is remembered by that ID", error.what()));
    }
    throw Error(ErrorCode::kNotFound,
                fmt::format("{}; runs that are over are not remembered: {} (XDG_STATE_HOME names "
                            "another place)",
                            error.what(), why));
  }
}

}  // namespace

int logs_command(const std::vector<std::string>& words, const FindRanks& find) {
  LogsRequest request;
  const std::string name = only_name(
      read_request(words, logs_options().options, "lockstep logs", request), "lockstep logs");
  if (request.help) return print_help(logs_help());
  const auto running = running_jobs();
  std::vector<std::unique_ptr<Follower>> followers;
  const auto past = past_job(name, running);
  for (const JobEntry& job : past) {
    if (job.log_folder.empty()) {
      throw Error(
          ErrorCode::kNotFound,
          fmt::format("run {} is over and kept no logs; lockstep run --log_dir DIR keeps them",
                      job.run_id));
    }
    followers.push_back(std::make_unique<Follower>(job, nullptr, request.ranks, request.tail));
  }
  // A prefix of an ID is only used if no other job has it as its whole ID.
  const bool is_whole = is_exactly_named(running, name) || is_exactly_named(past, name);
  if (!name.empty() && !is_whole) {
    refuse_other_job("lockstep logs", name, find, running, [](const OtherJob&) {
      return "there are logs of lockstep run --log_dir alone";
    });
  }
  const auto agents =
      past.empty() ? hold_agents(find_running(running, name)) : std::vector<HeldAgent>();
  for (const HeldAgent& agent : agents) {
    if (agent.job.log_folder.empty()) {
      throw Error(ErrorCode::kNotFound,
                  fmt::format("job {} keeps no files; start it with --log_dir", agent.job.run_id));
    }
    followers.push_back(std::make_unique<Follower>(agent.job, &agent, request.ranks, request.tail));
  }
  for (const auto& follower : followers) follower->show(!request.follow);
  while (request.follow && !followers.empty()) {
    for (auto& follower : followers) {
      const bool over = follower->wait();
      follower->show(over);
      if (over) follower.reset();
    }
    std::erase(followers, nullptr);
  }
  return 0;
}

}  // namespace lockstep::inline internal
