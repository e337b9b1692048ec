// The part of MembershipClient that finds the job again: after the loss of its store, and at the
// endpoint that the job left.

#include <optional>
#include <string>

#include "lockstep/deadline.h"
#include "lockstep/error.h"
#include "lockstep/launch/rendezvous/keys.h"
#include "lockstep/launch/rendezvous/membership_client.h"

namespace lockstep::inline internal {

/// The leader of a job that left its endpoint looks for other agents there, and where they may have
/// taken over.
void MembershipClient::look_elsewhere() {
  const auto endpoint = leader_ ? backend_->elsewhere() : std::nullopt;
  if (!endpoint) return others_.stop_looking();
  const auto they = others_.look(*endpoint, own_endpoint(), leader_->running());
  if (!they) return;
  store_->set(keys::kMoved, to_string(*they), soon());
  throw Moved{*they};
}

/// The address by which other hosts reach it.
Endpoint MembershipClient::own_endpoint() const {
  return {status_->join_request().address, backend_->own_port()};
}

/// A job that cannot change ends with the loss of the agent that serves its store, as of any other.
void MembershipClient::end_with_loss() {
  Failure failure;
  failure.status.code = 1;
  failure.cause = backend_->loss();
  status_->end({failure, ""});
  saw_end_ = true;
}

/// False: nobody answers there any more, so the job must be found as after a loss.
bool MembershipClient::go_to(const Endpoint& where) {
  try {
    store_ = backend_->reopen({{where}}, stopping_, Deadline::after(backend_->call_limit()));
    others_.forget_all();
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kTimeout) throw;
    return false;
  }
}

/// A job that cannot change goes on at the same store. False: nobody serves there any more, or none
/// has answered within the limit.
bool MembershipClient::rejoin() {
  store_ = backend_->rejoin(stopping_, Deadline::at(contact_.lost_at()));
  return store_ != nullptr;
}

void MembershipClient::reopen(const std::optional<Endpoint>& moved, const std::string& why) {
  leader_.reset();
  status_->use(nullptr);
  store_.reset();
  if (over()) return;
  if (assignment_ && !can_change(options_)) {
    if (!rejoin() && !stopping_) end_with_loss();
    return;
  }
  // A server not known to be dead may be behind a cut link with workers, and take this one for
  // dead.
  const bool silent = !moved && !backend_->nobody_serves();
  if (own_generation_runs()) {
    stop_work(std::nullopt, why, silent ? std::optional(contact_.fence()) : std::nullopt);
  }
  others_.stop_looking();  // only now: that thread may be in a long look-up of a name
  alone_until_ = silent ? contact_.lost_at() + kWayLimit : JobTime{};
  if (moved && go_to(*moved)) return;
  RendezvousBackend::Candidates candidates;
  if (assignment_) {
    candidates.in_order = assignment_->successors;
    candidates.own = static_cast<size_t>(assignment_->node_rank) + 1;
    candidates.in_order.insert(candidates.in_order.begin(), backend_->endpoint());
  }
  store_ = backend_->reopen(candidates, stopping_, Deadline::after(options_.join_timeout));
  if (!backend_->may_lead()) return others_.forget_all();
  others_.remember(candidates, own_endpoint());
}

}  // namespace lockstep::inline internal
