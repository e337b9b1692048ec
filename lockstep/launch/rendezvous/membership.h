#pragma once
// What the leader of a job decides when agents come, go and fail: a pure function of its state and
// the event. No clock, no store; docs/design/rendezvous.md has the rules.
//
//   forming ──all MAX, or MIN for the grace──▶ running ──all done──▶ ended
//      ▲                                          │
//      └── leaving (workers end) ◀── failure, an agent lost or come ──▶ ended (no restarts left)
//
// Cost: an event that begins no generation takes O(log n) for n agents, one that does O(n log n).

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/error.h"
#include "lockstep/launch/job/restart_policy.h"
#include "lockstep/launch/rendezvous/messages.h"

namespace lockstep {

using JobTime = std::chrono::steady_clock::time_point;

struct MembershipRules {
  int min_nodes = 1;
  int max_nodes = 1;
  int max_restarts = 0;
  bool fixed_ranks = false;  ///< Each node has its --node_rank, and no other (back end static).
  std::chrono::milliseconds join_timeout{600000};
  std::chrono::milliseconds last_call_timeout{3000};
  /// After a leader was lost at least as long is waited for the others: until they all know.
  std::chrono::milliseconds return_grace{3000};
  /// No generation begins earlier: a leader that does not answer any more may still have workers,
  /// until it has seen the loss too.
  JobTime not_before{};
  /// An agent of a job that cannot change has so long to come back after its connection ended.
  std::chrono::milliseconds come_back{1000};
  std::chrono::milliseconds batch{1000};      ///< From a newcomer to the generation it begins.
  std::chrono::milliseconds say_after{5000};  ///< Until users are told who is awaited, and again.
  std::string run_id;
  std::string token;  ///< This leader's, of generation_token().
  std::string mark;   ///< Of this job's secret.
  std::string place;  ///< Where agents meet, for messages.
  std::string role;   ///< The leader's own, and the program of that role's ranks.
  std::string program;

  /// Whether a job that lost a node waits for another to come.
  bool elastic() const { return min_nodes < max_nodes || max_restarts > 0; }
};

struct MembershipState {
  struct Agent {
    JoinRequest offer;
    uint64_t arrival = 0;
    bool member = false;     ///< Takes part in the present generation.
    int64_t generation = 0;  ///< The last it was given a part in.
    int node_rank = -1;      ///< Its rank there.
    NodeWork work = NodeWork::kIdle;

    bool busy() const { return work == NodeWork::kBusy; }
    bool usable() const { return !busy() && offer.leaving == 0; }
  };
  /// So that no event has to look at all agents.
  struct Counts {
    int usable = 0;   ///< Could take part in a generation that forms now.
    int spares = 0;   ///< Of these, those that do not take part in the present one.
    int busy = 0;     ///< Have workers.
    int members = 0;  ///< Take part in the present generation and are here.
    int done = 0;     ///< Of these, those whose workers have all ended well.
  };
  MembershipRules rules;
  JobRecord::State state = JobRecord::State::kForming;
  int64_t generation = 0;  ///< The present or the last.
  int64_t newest = 0;      ///< That was ever heard of; the next is one more.
  bool inherited = false;  ///< Forming: `generation` is of an earlier leader, by what agents said.
  std::string launch;      ///< Of generation_token(); empty: this leader's first generation is one.
  RestartRecord restarts;
  /// Forming: of those that take part already, as many are expected to offer themselves anew.
  int expected_nodes = 0;
  std::map<std::string, Agent> agents;
  Counts counts;
  uint64_t arrivals = 0;
  std::map<int, std::string> by_wish;  ///< fixed_ranks: who is here, by --node_rank.

  JobTime forming_since;
  JobTime say_at;
  std::string awaited;                    ///< What was said last.
  std::optional<JobTime> enough_since;    ///< Forming: since then MIN are here.
  std::optional<JobTime> newcomer_since;  ///< Running: since then one more could take part.
  JobTime not_before{};                   ///< Forming: no generation begins earlier.
  bool at_once = false;                   ///< Leaving, forming: see JobRecord.
  /// Running, of a job that cannot change: members that are gone, until when they may come back.
  std::map<std::string, JobTime> missing;
  /// Leaving, and forming after it: why, where that is why. Ended: likewise.
  std::optional<Failure> failure;
  std::string why;              ///< Leaving, forming: why else. Ended: why there is no restart.
  std::optional<Failure> left;  ///< A member was ended by its user.
  std::vector<std::string> lost_hosts;  ///< Since a generation last began; the first few.
};

/// An agent's key appeared or changed.
struct AgentHere {
  std::string id;
  JoinRequest offer;
};
/// An agent's key is gone.
struct AgentLost {
  std::string id;
};
/// The first failure of a generation's workers.
struct WorkersFailed {
  int64_t generation = 0;
  Failure failure;
};
struct JobTimePassed {};
using MemberEvent = std::variant<AgentHere, AgentLost, WorkersFailed, JobTimePassed>;

/// To be written before the record that follows it.
struct PublishPlans {
  std::vector<std::pair<std::string, NodePlan>> plans;  ///< By agent; node rank order.
};
struct PublishRecord {
  JobRecord record;
};
/// Tell an agent that it cannot take part.
struct RefuseAgent {
  std::string id;
  ErrorCode code = ErrorCode::kMismatch;
  std::string why;
};
using MemberAction = std::variant<PublishPlans, PublishRecord, RefuseAgent>;

/// A leader begins: nobody is known to be here. What was before it learns from the offers.
MembershipState begin_membership(MembershipRules rules, JobTime now);

/// Changes `state` as `event` demands and returns what must be done, in this order.
std::vector<MemberAction> advance(MembershipState* state, const MemberEvent& event, JobTime now);

/// How the job stands now, for whoever begins to lead: workers of a generation that is not said to
/// run end.
JobRecord record_of(const MembershipState& state);

/// When JobTimePassed must come; nothing: never.
std::optional<JobTime> act_at(const MembershipState& state);

}  // namespace lockstep
