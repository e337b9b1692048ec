#include "lockstep/launch/jobs/job_control.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "lockstep/base/clock.h"
#include "lockstep/base/options.h"
#include "lockstep/deadline.h"
#include "lockstep/error.h"
#include "lockstep/launch/job/rendezvous_conf.h"
#include "lockstep/launch/jobs/job_table.h"
#include "lockstep/launch/jobs/past_jobs.h"
#include "lockstep/launch/jobs/registry.h"

namespace lockstep::inline internal {
namespace {

struct PsRequest {
  bool all = false, json = false, help = false;
};

const OptionGroup<PsRequest>& ps_options() {
  using R = PsRequest;
  static const OptionGroup<R> kOptions = {
      "",
      {{"all", 0, OptionKind::kFlag, "", "also those that are over, and how they ended",
        set_flag<&R::all>},
       {"json", 0, OptionKind::kFlag, "", "for programs", set_flag<&R::json>},
       help_option<R>()}};
  return kOptions;
}

HelpPage ps_help() {
  return {{{"lockstep ps [--all] [--json]", ""}},
          "Lists this user's jobs on this host: agents of lockstep run, and ranks that torchrun, "
          "mpirun, srun, a script or a program started. Steps are what the ranks report, as "
          "lockstep train does (lockstep/progress.h).",
          {help_group(ps_options())},
          ""};
}

struct StopRequest {
  bool all = false, kill = false, help = false;
  std::chrono::milliseconds timeout{60'000};
};

const OptionGroup<StopRequest>& stop_options() {
  using R = StopRequest;
  using Text = const std::string&;
  static const OptionGroup<R> kOptions = {
      "",
      {{"all", 0, OptionKind::kFlag, "", "every job of this user on this host", set_flag<&R::all>},
       {"timeout", 0, OptionKind::kValue, "S", "how long to wait for its end ({})",
        [](R& request, Text value, Text what) { request.timeout = parse_seconds(value, what); },
        shows<&R::timeout>},
       {"kill", 0, OptionKind::kFlag, "",
        "SIGKILL instead: nothing is left either, but no worker can clean up", set_flag<&R::kill>},
       help_option<R>()}};
  return kOptions;
}

HelpPage stop_help() {
  return {
      {{"lockstep stop [--timeout S] [--kill] ID|PID|--all", ""}},
      "Ends a job of this user on this host as SIGTERM to its lockstep run does, and waits for "
      "that. ID: the run's, or the beginning of one; PID: of one agent. lockstep ps lists them.",
      {help_group(stop_options())},
      ""};
}

size_t terminal_width() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace

std::string only_name(const std::vector<std::string>& words, const std::string& verb) {
  if (words.size() > 1) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: one job at a time, not '{}' and '{}'", verb, words[0], words[1]));
  }
  return words.empty() ? "" : words[0];
}

std::vector<JobEntry> jobs_to_stop(const std::vector<JobEntry>& jobs, const std::string& name,
                                   bool all, double now, size_t width) {
  const auto refusal = [](const std::string& why) {
    return Error(ErrorCode::kInvalidArgument, "lockstep stop: " + why);
  };
  if (all && !name.empty()) throw refusal(fmt::format("--all, or one job, '{}'; not both", name));
  if (all) return jobs;
  if (!name.empty()) return find_jobs(jobs, name);
  if (jobs.empty()) throw refusal("say which job, by its ID; none of this user runs on this host");
  const std::string table = job_table(jobs, now, width);
  throw refusal(
      fmt::format("say which job, by its RUN or PID ('lockstep stop {}'), or --all; "
                  "these run on this host:\n{}",
                  jobs[0].run_id, table.substr(0, table.size() - 1)));
}

int ps_command(const std::vector<std::string>& words, const FindRanks& find) {
  PsRequest request;
  read_only_options(words, ps_options().options, "lockstep ps", request);
  if (request.help) return print_help(ps_help());
  auto jobs = running_jobs(WithoutProc::kAllThatHoldTheirLocks);
  const auto others = other_jobs_here(find, jobs);
  if (request.all) {
    auto over = jobs_that_are_over(jobs);
    jobs.insert(jobs.end(), over.begin(), over.end());
  }
  const double now = seconds_since_1970();
  const std::string text = request.json ? jobs_as_json(jobs, now, others)
                                        : job_table(jobs, now, terminal_width(), others);
  std::fputs(text.c_str(), stdout);
  return 0;
}

int stop_command(const std::vector<std::string>& words, const FindRanks& find) {
  StopRequest request;
  const std::string name = only_name(
      read_request(words, stop_options().options, "lockstep stop", request), "lockstep stop");
  if (request.help) return print_help(stop_help());
  const auto deadline = Deadline::after(request.timeout);
  int code = 0;
  const auto running = running_jobs();
  // A prefix of an ID is only used if no other job has it as its whole ID.
  if (!name.empty() && !is_exactly_named(running, name)) {
    refuse_other_job("lockstep stop", name, find, running,
                     [](const OtherJob& job) { return "end it with: " + how_to_end(job); });
  }
  const auto agents =
      hold_agents(jobs_to_stop(running, name, request.all, seconds_since_1970(), terminal_width()));
  for (const HeldAgent& agent : agents) {
    agent.process.send(request.kill ? SIGKILL : SIGTERM);
    // A stopped agent would handle the signal only after SIGCONT.
    agent.process.send(SIGCONT);
  }
  for (const HeldAgent& agent : agents) {
    const bool ended = agent.ended(deadline.left_poll_ms());
    std::printf("%s (process %d) %s\n", agent.job.run_id.c_str(), agent.job.pid,
                ended ? "has ended" : "still runs: its workers take their time; --kill ends it");
    if (!ended) code = 1;
  }
  running_jobs();  // removes the entries of killed agents
  return code;
}

}  // namespace lockstep::inline internal
