#include "lockstep/launch/agent/job_listing.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "lockstep/base/clock.h"
#include "lockstep/launch/jobs/past_jobs.h"

namespace lockstep::inline internal {
namespace {

constexpr std::chrono::milliseconds kListedAfter{50};

std::string absolute(const std::string& path) {
  std::error_code ignored;
  return path.empty() ? path : std::filesystem::absolute(path, ignored).string();
}

}  // namespace

JobListing::JobListing(const Environment& environment)
    : environment_(environment), file_(registry_folders(environment)) {}

void JobListing::begin() {
  began_ = seconds_since_1970();
  due_ = std::chrono::steady_clock::now() + kListedAfter;
}

void JobListing::write(const JobAssignment& assignment, const std::vector<std::string>& command,
                       const Generation& generation) {
  due_.reset();
  entry_.pid = ::getpid();
  entry_.run_id = assignment.run_id;
  entry_.node_rank = assignment.node_rank;
  entry_.num_nodes = assignment.num_nodes;
  entry_.first_rank = assignment.ranks.first_rank;
  entry_.local_size = assignment.ranks.local_size;
  entry_.world_size = assignment.world_size;
  entry_.restart_count = assignment.restart_count;
  entry_.began = began_;
  entry_.host = assignment.host;
  entry_.folder = absolute(".");
  entry_.log_folder = absolute(generation.run_folder);
  entry_.attempt_folder = absolute(generation.attempt_folder);
  if (generation.steps) entry_.steps = *generation.steps;
  entry_.command = command;
  file_.write(entry_);
  remember_job(past_jobs_folder(environment_), entry_);
}

void JobListing::remember_end(int code, const std::optional<Failure>& failure, int num_nodes) {
  if (entry_.pid == 0) return;
  entry_.ended = seconds_since_1970();
  entry_.exit_code = code;
  if (failure) {
    entry_.why = failure_line(*failure, num_nodes);
    entry_.cause = failure_words(*failure);
  }
  remember_job(past_jobs_folder(environment_), entry_);
}

void JobListing::remove() {
  due_.reset();
  file_.remove();
}

}  // namespace lockstep::inline internal
