#include "lockstep/launch/rendezvous/membership_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/generation_token.h"
#include "lockstep/base/literals.h"
#include "lockstep/base/log.h"
#include "lockstep/launch/rendezvous/admission.h"
#include "lockstep/launch/rendezvous/keys.h"
#include "lockstep/launch/rendezvous/messages.h"

namespace lockstep::inline internal {
namespace {

using State = JobRecord::State;

/// Part of a call to a store that does not answer; stop() is checked between two parts.
constexpr std::chrono::seconds kPart{2};

/// Interval of checks for stop() if heartbeats are rare.
constexpr std::chrono::seconds kLook{1};

std::optional<AgentStatus::Time> at_once(const JobRecord& record) {
  if (!record.at_once) return std::nullopt;
  return std::chrono::steady_clock::now();
}

/// The store or the way to it is gone; another may be found.
bool is_loss(const Error& error) {
  return error.code() == ErrorCode::kPeerLost || error.code() == ErrorCode::kTimeout ||
         error.code() == ErrorCode::kUnavailable;
}

}  // namespace

MembershipClient::MembershipClient(const RunOptions& options, const std::string& secret,
                                   RendezvousBackend* backend, WorkersStore* workers,
                                   AgentStatus* status)
    : options_(options),
      secret_(secret),
      backend_(backend),
      workers_(workers),
      status_(status),
      others_(secret, options),
      contact_(options_, backend) {}

Deadline MembershipClient::soon() const {
  return Deadline::after(backend_->call_limit());
}

/// The result of call(deadline), repeated in parts: stop() need not wait for a store's return.
template <class Call>
bool MembershipClient::in_parts(const Call& call) {
  const Deadline end = soon();
  while (true) {
    try {
      const auto to_fence = contact_.fence() - std::chrono::steady_clock::now();
      const bool cut = to_fence > to_fence.zero() && to_fence < kPart;
      const bool yes = call(cut ? end.at_most(to_fence) : end.at_most(kPart));
      contact_.heard();
      return yes;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kTimeout) throw;
      keep_fence();
      if (stopping_ || end.passed()) throw;
      contact_.report_silence();
    }
  }
}

/// Ends the workers before another generation can begin unseen by this agent. If nothing can
/// replace them, they go on.
void MembershipClient::keep_fence() {
  const auto now = std::chrono::steady_clock::now();
  if (!can_change(options_) || now < contact_.fence() || !own_generation_runs()) return;
  status_->stop_work(std::nullopt, backend_->name() + " does not answer", now);
}

/// The changes since the last watch. A job that cannot change tolerates a silent store for a while.
KeyValueStore::Changes MembershipClient::watch(Deadline until) {
  try {
    auto changes = store_->watch(leader_ ? keys::kLive : keys::kStatus, version_, until);
    contact_.heard();
    return changes;
  } catch (const Error& error) {
    const bool patient = !can_change(options_) && assignment_;
    if (error.code() != ErrorCode::kTimeout || !patient ||
        std::chrono::steady_clock::now() >= contact_.lost_at()) {
      throw;
    }
    contact_.report_silence();
    return {version_, {}};
  }
}

MembershipRules MembershipClient::rules() const {
  MembershipRules rules;
  rules.min_nodes = options_.min_nodes;
  rules.max_nodes = options_.num_nodes;
  rules.max_restarts = options_.max_restarts;
  rules.fixed_ranks = options_.rdzv_backend == "static";
  rules.join_timeout = options_.join_timeout;
  rules.last_call_timeout = options_.last_call_timeout;
  rules.return_grace = contact_.allowed().limit + kWayLimit;
  rules.not_before = alone_until_;
  // A job that goes on keeps its generated name.
  rules.run_id = assignment_               ? assignment_->run_id
                 : options_.run_id.empty() ? make_run_id()
                                           : options_.run_id;
  rules.term = make_token_part();
  rules.mark = secret_mark(secret_, options_.wire);
  rules.endpoint = backend_->name();
  rules.own = join_request_from_json(to_json(status_->join_request()));  // cut as others' are
  return rules;
}

void MembershipClient::run() {
  try {
    store_ = backend_->open(Deadline::after(options_.join_timeout));
    while (!over()) {
      try {
        take_part();
      } catch (const Moved& moved) {
        reopen(moved.where, "the job goes on at " + to_string(moved.where));
      } catch (const Error& error) {
        if (!is_loss(error)) throw;
        reopen(std::nullopt, error.what());
      }
    }
  } catch (const Error& error) {
    status_->fail(error);
  }
  others_.stop_looking();
  leader_.reset();
  status_->use(nullptr);
  store_.reset();
}

void MembershipClient::take_part() {
  version_ = 0;
  leader_began_ = false;
  // A job that cannot change is still the one that this agent takes part in.
  requested_ = assignment_ && !can_change(options_);
  contact_.heard();
  backend_->remember_addresses();
  leader_.reset();
  others_.stop_looking();
  status_view_.emplace(status_->id());
  status_->use(store_);
  if (backend_->may_lead()) try_to_lead();
  while (true) {
    // The status from before stop() is still read, so that a leader that is ending announces it.
    const bool last_look = stopping_;
    const auto until = last_look ? Deadline::after(std::chrono::milliseconds(0)) : next_look();
    const auto changes = watch(until);
    version_ = changes.version;
    apply_changes(changes);
    if (saw_end_ || last_look) return;
    if (next_heartbeat_.passed()) send_heartbeat();
    if (leader_) leader_->look_at_clock();
    if (!leader_ && backend_->may_lead() && status_view_->term().empty()) try_to_lead();
    look_elsewhere();
  }
}

Deadline MembershipClient::next_look() const {
  const auto at = leader_ ? leader_->next_look() : std::nullopt;
  const Deadline heartbeat = next_heartbeat_.at_most(kLook);
  return at ? Deadline::at(std::min(*at, heartbeat.when())) : heartbeat;
}

bool MembershipClient::lease_lead() {
  return in_parts([&](Deadline part) {
    return store_->set_with_lease(keys::kLeader, term_, contact_.allowed().limit, part);
  });
}

void MembershipClient::try_to_lead() {
  MembershipRules own = rules();
  term_ = own.term;
  if (!lease_lead()) return;
  // The leader is here: any entry there is from an agent that went and could not erase it.
  store_->erase(keys::kMoved, soon());
  leader_.emplace(store_, std::move(own));
  leader_began_ = false;
  version_ = 0;  // everything that is there
}

void MembershipClient::apply_changes(const KeyValueStore::Changes& changes) {
  status_view_->take(changes.changes);
  // Silent for too long, as a stopped process is: another agent leads by now, or will.
  if (leader_ && leader_began_ && status_view_->term() != term_) leader_.reset();
  if (leader_ && !leader_began_) {
    leader_began_ = true;
    leader_->begin(changes.changes);
  } else if (leader_) {
    leader_->take(changes.changes);
  }
  const std::string& term = status_view_->term();
  if (!term.empty() && status_->change_term(term) && requested_) send_heartbeat();
  join_if_open();
  follow();
}

/// A job that has ended takes no agents: those of the next job wait until its agents are gone.
void MembershipClient::join_if_open() {
  const auto& record = status_view_->record();
  if (requested_ || !(leader_ || (record && record->state != State::kEnded))) return;
  requested_ = true;
  send_heartbeat();
}

void MembershipClient::send_heartbeat() {
  const auto& record = status_view_->record();
  contact_.count_agents(record ? record->num_agents : 0);
  next_heartbeat_ = Deadline::after(contact_.allowed().interval);
  const auto began = Deadline::after(0ms);
  in_parts([&](Deadline part) {
    status_->publish_failure(part);
    return true;
  });
  // False: our lost connection still holds the key, and soon ends. Nothing: the other thread is
  // writing it, and may hang.
  const auto publish = [&](Deadline part) {
    return status_->publish(contact_.allowed().limit, part).value_or(false);
  };
  if (requested_ && in_parts(publish)) contact_.heartbeat_accepted(began);
  if (leader_ && !lease_lead()) leader_.reset();
}

void MembershipClient::follow() {
  if (!requested_) return;
  if (status_view_->refused()) throw Error(*status_view_->refused());
  if (status_view_->moved() && to_string(*status_view_->moved()) != to_string(backend_->endpoint()))
    throw Moved{*status_view_->moved()};
  const auto& record = status_view_->record();
  if (!record) return;
  switch (record->state) {
    case State::kRunning:
      return on_running(*record);
    case State::kForming:
      return on_forming(*record);
    case State::kLeaving:
      return stop_work(record->failure, record->why, at_once(*record));
    case State::kEnded:
      saw_end_ = true;
      return status_->end({record->failure, record->why});
  }
}

void MembershipClient::stop_work(const std::optional<Failure>& failure, const std::string& why,
                                 std::optional<AgentStatus::Time> kill_by) {
  if (status_->stop_work(failure, why, kill_by) && store_) send_heartbeat();
}

void MembershipClient::on_forming(const JobRecord& record) {
  if (own_generation_runs()) {
    // A job that cannot change ends with its leader's loss.
    if (!can_change(options_)) return end_with_loss();
    stop_work(record.failure, record.why.empty() ? "the job's leader changed" : record.why,
              at_once(record));
  }
  if (record.awaited.empty() || record.awaited == shown_) return;
  shown_ = record.awaited;
  log_info(shown_);
}

void MembershipClient::on_running(const JobRecord& record) {
  const JoinRequest own = status_->join_request();
  if (own.generation == record.generation) return;
  const auto text = store_->try_get(keys::assignment(status_->id()), soon());
  if (text) {
    const HostAssignment assignment = host_assignment_from_json(*text);
    if (assignment.generation == record.generation) {
      // An agent whose workers are done delays nobody, so it may have missed that they must leave.
      if (own_generation_runs()) stop_work(failure_of(own.generation), "the others went on");
      return begin(assignment);
    }
  }
  // The assignment is of an earlier generation, or of another part of the job.
  stop_work(std::nullopt, "the others went on without this host");
  const std::string spare = fmt::format("generation {}", record.generation);
  if (spare == shown_) return;
  shown_ = spare;
  // The record does not count agents that come later.
  const bool room = record.num_agents < options_.num_nodes;
  log_info(
      room ? fmt::format("{} runs with room for this host, which takes part from the next one on",
                         spare)
           : "all hosts that can take part do; this one waits to take the place of another");
}

/// The failure that ended a generation, if there was one.
std::optional<Failure> MembershipClient::failure_of(int64_t generation) {
  const auto text = store_->try_get(keys::failure(generation), soon());
  return text ? std::optional(failure_from_json(*text)) : std::nullopt;
}

void MembershipClient::warn_of_another_command() const {
  const auto text = difference_text(*status_view_->record(), status_->join_request());
  if (text) log_warn(*text);
}

void MembershipClient::begin(const HostAssignment& assignment) {
  if (!assignment_) warn_of_another_command();
  assignment_ = assignment;
  others_.forget(assignment.successors);
  shown_.clear();
  if (assignment.node_rank == 0) {
    workers_->serve();
    status_->change_ports(workers_->store_port(), workers_->torch_port());
  } else {
    workers_->stop();
  }
  JobAssignment job = job_assignment(assignment);
  job.host = status_->join_request().host;
  job.secret = secret_;
  job.wire = options_.wire;
  job.agent_serves_torch = agent_serves_torch(options_);
  status_->take_assignment(std::move(job));
  send_heartbeat();
}

bool MembershipClient::own_generation_runs() const {
  return status_->join_request().work != HostWork::kIdle;
}

}  // namespace lockstep::inline internal
