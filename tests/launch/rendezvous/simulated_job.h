#pragma once
// Agents without processes: they carry out the membership's actions in simulated time.

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/launch/rendezvous/membership.h"

namespace lockstep::testing {

class SimulatedJob {
 public:
  struct Node {
    JoinRequest request;
    std::optional<HostAssignment> assignment;  ///< Of the generation of its workers.
  };

  explicit SimulatedJob(MembershipRules rules)
      : rules_(rules), state_(begin_membership(std::move(rules), now_)) {}

  /// An agent comes; `change` completes its join request.
  template <class Change>
  void come(const std::string& id, const Change& change) {
    JoinRequest request;
    request.host = "host-" + id;
    request.address = id + ".example";
    request.min_nodes = rules_.min_nodes;
    request.max_nodes = rules_.max_nodes;
    request.term = rules_.term;
    change(&request);
    nodes[id].request = request;
    tell(AgentHere{id, request});
  }
  void come(const std::string& id) {
    come(id, [](JoinRequest*) {});
  }
  void come_ranked(const std::string& id, int node_rank) {
    come(id, [&](JoinRequest* request) { request->node_rank = node_rank; });
  }

  void lose(const std::string& id) {
    nodes.erase(id);
    tell(AgentLost{id});
  }
  void stop_by_user(const std::string& id, int signal) {
    nodes.at(id).request.leaving = signal;
    say(id);
  }
  void done(const std::string& id) {
    nodes.at(id).request.work = HostWork::kDone;
    say(id);
  }
  void fail(const std::string& id, int code = 1, int signal = 0) {
    Failure failure;
    failure.host = nodes.at(id).request.host;
    failure.node_rank = nodes.at(id).assignment->node_rank;
    failure.rank = nodes.at(id).assignment->ranks.first_rank;
    failure.status = {code, signal};
    tell(WorkersFailed{nodes.at(id).assignment->generation, failure});
  }
  void fail_before_a_step(const std::string& id) {
    Failure failure;
    failure.status = {1, 0};
    failure.steps = Steps::kNone;
    tell(WorkersFailed{nodes.at(id).assignment->generation, failure});
  }
  /// All nodes that must leave have ended their workers.
  void end_workers() {
    std::vector<std::string> ids;
    for (const auto& [id, node] : nodes) {
      if (node.request.work == HostWork::kBusy && !runs(node)) ids.push_back(id);
    }
    for (const auto& id : ids) end_workers(id);
  }
  void end_workers(const std::string& id) {
    nodes.at(id).assignment.reset();
    nodes.at(id).request.work = HostWork::kIdle;
    say(id);
  }
  /// The same agent leads again, and finds the join requests as they are.
  void lead_again(const std::string& term) {
    rules_.term = term;
    state_ = begin_membership(rules_, now_);
    for (const auto& [id, node] : std::map(nodes)) tell(AgentHere{id, node.request});
    record = record_of(state_);
  }
  void write_in_this_term(const std::string& id) {
    nodes.at(id).request.term = rules_.term;
    say(id);
  }
  void pass(std::chrono::milliseconds time) {
    const JobTime until = now_ + time;
    // As in reality: at the requested times, and no other.
    for (auto at = act_at(state_); at && *at <= until; at = act_at(state_)) {
      now_ = std::max(now_, *at);
      tell(JobTimePassed{});
    }
    now_ = until;
  }

  bool running() const { return record.state == JobRecord::State::kRunning; }
  bool forming() const { return record.state == JobRecord::State::kForming; }
  bool leaving() const { return record.state == JobRecord::State::kLeaving; }
  bool ended() const { return record.state == JobRecord::State::kEnded; }
  /// Node ranks of the running generation: "a0 b1".
  std::string ranks() const {
    std::string text;
    for (const auto& [id, node] : nodes) {
      if (!runs(node)) continue;
      text += (text.empty() ? "" : " ") + id + std::to_string(node.assignment->node_rank);
    }
    return text;
  }
  bool runs(const Node& node) const {
    return running() && node.assignment && node.assignment->generation == record.generation;
  }
  const MembershipState& state() const { return state_; }
  JobTime now() const { return now_; }

  std::map<std::string, Node> nodes;
  JobRecord record;
  std::vector<RefuseAgent> refused;
  int num_records = 0;
  int num_overlaps = 0;  ///< Nodes that had workers when a generation began.

 private:
  void say(const std::string& id) { tell(AgentHere{id, nodes.at(id).request}); }

  void tell(const MemberEvent& event) {
    for (const MemberAction& action : advance(&state_, event, now_)) {
      std::visit([this](const auto& each) { act(each); }, action);
    }
  }
  void act(const PublishAssignments& action) { published_ = action.assignments; }
  void act(const PublishRecord& action) {
    record = action.record;
    ++num_records;
    if (!running()) return;
    for (const auto& [id, node] : nodes) {
      if (node.request.work == HostWork::kBusy) ++num_overlaps;
    }
    for (const auto& [id, assignment] : published_) {
      Node& node = nodes.at(id);
      node.assignment = assignment;
      node.request.generation = assignment.generation;
      node.request.last_rank = assignment.node_rank;
      node.request.num_nodes = assignment.num_nodes;
      node.request.restart_count = assignment.restart_count;
      node.request.token = assignment.token;
      node.request.stepped = assignment.stepped;
      node.request.early_failures = assignment.early_failures;
      node.request.failures_in_a_row = assignment.failures_in_a_row;
      node.request.work = HostWork::kBusy;
    }
    published_.clear();
  }
  void act(const RefuseAgent& action) {
    refused.push_back(action);
    nodes.erase(action.id);
  }

  MembershipRules rules_;
  JobTime now_{};
  MembershipState state_;
  std::vector<std::pair<std::string, HostAssignment>> published_;
};

}  // namespace lockstep::testing
