#include "lockstep/launch/rendezvous/agent_status.h"

#include <sys/eventfd.h>

#include <utility>

#include "lockstep/launch/job/json_members.h"
#include "lockstep/launch/rendezvous/keys.h"

namespace lockstep::inline internal {
namespace {

/// Limit of the agent's loop for a call to a rendezvous store that hangs.
constexpr auto kPublishLimit = std::chrono::seconds(2);
/// Limit of a failure's texts, so that a record of it stays within its own limit.
constexpr size_t kMaxLine = 2000;

Failure shortened(Failure failure) {
  failure.cause = cut(failure.cause, kMaxLine);
  for (std::string& line : failure.stderr_tail) line = cut(line, kMaxLine);
  return failure;
}

}  // namespace

AgentStatus::AgentStatus(std::string id, JoinRequest request)
    : id_(std::move(id)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      request_(std::move(request)) {
  if (!wake_) throw io_error("eventfd");
}

std::optional<JobAssignment> AgentStatus::wait_for_assignment() {
  MutexLock lock(mutex_);
  while (!assignment_ && !error_ && !job_status_.end) changed_.wait(lock);
  // A job may end before its assignment is fetched; the status then contains its end.
  if (assignment_) return fetch();
  if (error_) throw Error(*error_);
  return std::nullopt;
}

JobAssignment AgentStatus::fetch() {
  JobStatus status;
  status.end = std::move(job_status_.end);
  job_status_ = std::move(status);
  JobAssignment assignment = std::move(*assignment_);
  assignment_.reset();
  return assignment;
}

JobStatus AgentStatus::job_status() {
  MutexLock lock(mutex_);
  eventfd_t count = 0;
  ::eventfd_read(wake_.get(), &count);
  return job_status_;
}

std::optional<JobAssignment> AgentStatus::next() {
  MutexLock lock(mutex_);
  if (!assignment_) return std::nullopt;
  return fetch();
}

void AgentStatus::failed(const Failure& failure) {
  {
    MutexLock lock(mutex_);
    if (assignment_ || !store_) return;
    pending_failure_ = {request_.generation, to_json(shortened(failure))};
  }
  try {
    publish_failure(Deadline::after(kPublishLimit));
  } catch (const Error&) {
    // The thread repeats it, or sees that the store is gone; that ends this generation too.
  }
}

void AgentStatus::publish_failure(Deadline deadline) {
  std::shared_ptr<KeyValueStore> store;
  PendingFailure pending;
  {
    MutexLock lock(mutex_);
    if (!pending_failure_ || !store_) return;
    store = store_;
    pending = *pending_failure_;
  }
  store->set_if_missing(keys::failure(pending.generation), pending.text, deadline);
  MutexLock lock(mutex_);
  if (pending_failure_ && pending_failure_->generation == pending.generation)
    pending_failure_.reset();
}

void AgentStatus::ended_work(HostWork work, bool stepped) {
  {
    MutexLock lock(mutex_);
    if (assignment_) return;  // published for the previous generation
    request_.work = work;
    request_.stepped = request_.stepped || stepped;
  }
  publish_quietly();
}

void AgentStatus::leave(int signal) {
  {
    MutexLock lock(mutex_);
    request_.leaving = signal;
  }
  publish_quietly();
}

void AgentStatus::publish_quietly() {
  std::chrono::milliseconds ttl{};
  {
    MutexLock lock(mutex_);
    if (!store_ || !published_) return;
    ttl = ttl_;
  }
  try {
    publish(ttl, Deadline::after(kPublishLimit));
  } catch (const Error&) {
    // The thread repeats it if the job goes on.
  }
}

void AgentStatus::use(std::shared_ptr<KeyValueStore> store) {
  MutexLock lock(mutex_);
  store_ = std::move(store);
  published_ = false;
  pending_failure_.reset();  // the loss of a store ends its generation
}

std::optional<bool> AgentStatus::publish(std::chrono::milliseconds ttl, Deadline deadline) {
  {
    MutexLock lock(mutex_);
    ttl_ = ttl;
    published_ = true;
    publish_again_ = publishing_;
    if (publishing_) return std::nullopt;  // a store that hangs delays nothing else
    publishing_ = true;
  }
  while (true) {
    try {
      const bool leased = write_join_request(ttl, deadline);
      if (published_all()) return leased;
    } catch (...) {
      if (published_all()) throw;
    }
  }
}

bool AgentStatus::write_join_request(std::chrono::milliseconds ttl, Deadline deadline) {
  std::shared_ptr<KeyValueStore> store;
  std::string text;
  {
    MutexLock lock(mutex_);
    store = store_;
    text = to_json(request_);
    publish_again_ = false;
  }
  return !store || store->set_with_lease(keys::agent(id_), text, ttl, deadline);
}

/// False: the join request has changed meanwhile.
bool AgentStatus::published_all() {
  MutexLock lock(mutex_);
  publishing_ = publish_again_;
  return !publishing_;
}

void AgentStatus::take_assignment(JobAssignment assignment) {
  MutexLock lock(mutex_);
  request_.generation = assignment.generation;
  request_.last_rank = assignment.node_rank;
  request_.num_nodes = assignment.num_nodes;
  request_.restart_count = assignment.restart_count;
  request_.token = assignment.token;
  request_.stepped = assignment.stepped;
  request_.early_failures = assignment.early_failures;
  request_.failures_in_a_row = assignment.failures_in_a_row;
  request_.work = HostWork::kBusy;
  assignment_ = std::move(assignment);
  wake();
}

bool AgentStatus::stop_work(const std::optional<Failure>& failure, const std::string& why,
                            std::optional<Time> kill_by) {
  MutexLock lock(mutex_);
  if (assignment_) {
    assignment_.reset();
    request_.work = HostWork::kIdle;
    return true;
  }
  const bool sooner = kill_by && (!job_status_.kill_by || *kill_by < *job_status_.kill_by);
  if ((job_status_.leave && !sooner) || request_.generation == 0) return false;
  if (!job_status_.leave) {
    job_status_.leave = true;
    job_status_.failure = failure;
    job_status_.why = why;
  }
  if (sooner) job_status_.kill_by = kill_by;
  wake();
  return false;
}

void AgentStatus::end(const JobEnd& end) {
  MutexLock lock(mutex_);
  if (!job_status_.end) job_status_.end = end;
  // An agent that still waits for its first generation learns why there is none.
  if (!error_ && end.failure) {
    error_.emplace(ErrorCode::kMismatch, "the job has ended without this host: " +
                                             failure_line(*end.failure, request_.max_nodes));
  }
  wake();
}

void AgentStatus::fail(const Error& error) {
  MutexLock lock(mutex_);
  if (!error_) error_.emplace(error);
  if (!job_status_.end) {
    Failure failure;
    failure.host = request_.host;
    failure.node_rank = std::max(request_.last_rank, 0);
    failure.status.code = 1;
    failure.cause = error.what();
    job_status_.end = JobEnd{failure, ""};
  }
  wake();
}

void AgentStatus::change_ports(int store_port, int torch_port) {
  MutexLock lock(mutex_);
  request_.store_port = store_port;
  request_.torch_port = torch_port;
}

bool AgentStatus::change_term(const std::string& term) {
  MutexLock lock(mutex_);
  return std::exchange(request_.term, term) != term;
}

JoinRequest AgentStatus::join_request() const {
  MutexLock lock(mutex_);
  return request_;
}

void AgentStatus::wake() {
  ::eventfd_write(wake_.get(), 1);
  changed_.notify_all();
}

}  // namespace lockstep::inline internal
