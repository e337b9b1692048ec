#pragma once
// The leader's decisions when agents come, go and fail: a pure function of its state and the event.
// No clock, no store; docs/design/rendezvous.md has the rules.
//
//   forming ──all MAX, or MIN for the grace──▶ running ──all done──▶ ended
//      ▲                                          │
//      └── leaving (workers end) ◀── failure, an agent lost or come ──▶ ended (no restarts left)
//
// Cost for n agents: O(log n) an event; O(n log n) if it begins a generation.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/error.h"
#include "lockstep/launch/job/restart_policy.h"
#include "lockstep/launch/rendezvous/messages.h"

namespace lockstep::inline internal {

using JobTime = std::chrono::steady_clock::time_point;

struct MembershipRules {
  int min_nodes = 1;
  int max_nodes = 1;
  int max_restarts = 0;
  bool fixed_ranks = false;  ///< Each host has its --node_rank, and no other (backend static).
  std::chrono::milliseconds join_timeout{600000};
  std::chrono::milliseconds last_call_timeout{3000};
  /// After a leader's loss the others get at least this long, until all have noticed it.
  std::chrono::milliseconds return_grace{3000};
  /// No generation begins earlier: a leader that stopped answering may still have workers, until it
  /// notices the loss too.
  JobTime not_before{};
  /// In a job that cannot change, how long an agent may take to come back after its connection
  /// ended.
  std::chrono::milliseconds come_back{1000};
  std::chrono::milliseconds batch{1000};         ///< From a newcomer to its generation.
  std::chrono::milliseconds report_after{5000};  ///< Until missing hosts are named, and again.
  std::string run_id;
  /// Names the time for which this agent leads, as do the join requests of agents that have read
  /// it. It is this leader's part of generation_token(). Who leads again does so in another term.
  std::string term;
  std::string mark;      ///< secret_mark() of this job.
  std::string endpoint;  ///< Where agents meet, for messages.
  JoinRequest own;       ///< The leader's, with which others are compared.

  /// Whether a job that lost a host waits for another one.
  bool elastic() const { return min_nodes < max_nodes || max_restarts > 0; }
};

struct MembershipState {
  struct Agent {
    JoinRequest request;
    uint64_t arrival = 0;
    bool member = false;     ///< Takes part in the present generation.
    int64_t generation = 0;  ///< The last one it was part of.
    int node_rank = -1;      ///< Its rank there.
    HostWork work = HostWork::kIdle;
    bool alive = false;  ///< Known to be: it wrote its join request in this term.

    bool busy() const { return work == HostWork::kBusy; }
    bool usable() const { return alive && !busy() && request.leaving == 0; }
    /// It took part in the job that goes on, unless it is dead: then its key is gone soon.
    bool doubtful() const { return !alive && generation > 0; }
  };
  /// Kept so that no event has to visit all agents.
  struct Counts {
    int usable = 0;   ///< Could take part in a generation that forms now.
    int spares = 0;   ///< Usable agents that do not take part in the present one.
    int busy = 0;     ///< Have workers.
    int members = 0;  ///< Take part in the present generation and are here.
    int done = 0;     ///< Members whose workers have all ended well.
    int doubtful = 0;

    /// No generation begins beside earlier workers, or before it is known whether an agent that may
    /// have had them is alive.
    bool settled() const { return busy == 0 && doubtful == 0; }
  };
  MembershipRules rules;
  JobRecord::State state = JobRecord::State::kForming;
  int64_t generation = 0;  ///< The present or the last one.
  int64_t newest = 0;      ///< Highest number known; the next is one more.
  bool inherited = false;  ///< Forming: `generation` is from the agents' join requests.
  std::string launch;      ///< Of generation_token(); empty: set by the first generation.
  RestartRecord restarts;
  /// Forming: number of earlier members that are expected to come again.
  int expected_hosts = 0;
  std::map<std::string, Agent> agents;
  Counts counts;
  uint64_t arrivals = 0;
  std::map<int, std::string> by_wish;  ///< fixed_ranks: present agents, by --node_rank.
  std::set<std::pair<std::string, std::string>> by_host;  ///< Present agents, after their host_id.

  JobTime forming_since;
  JobTime report_at;
  std::string awaited;                    ///< The text shown last.
  std::optional<JobTime> enough_since;    ///< Forming: since when MIN are here.
  std::optional<JobTime> newcomer_since;  ///< Running: since when one more could take part.
  JobTime not_before{};                   ///< Forming: no generation begins earlier.
  bool at_once = false;                   ///< Leaving, forming: see JobRecord.
  /// Running, of a job that cannot change: missing members, and until when they may come back.
  std::map<std::string, JobTime> missing;
  /// Leaving, then forming, or ended: the failure that caused it, if any.
  std::optional<Failure> failure;
  std::string why;              ///< Leaving, forming: another reason. Ended: why no restart.
  std::optional<Failure> left;  ///< A member was ended by its user.
  std::vector<std::string> lost_hosts;  ///< Since the last start of a generation; the first few.
};

/// An agent's key appeared or changed.
struct AgentHere {
  std::string id;
  JoinRequest request;
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

/// To be written before the record that follows.
struct PublishAssignments {
  std::vector<std::pair<std::string, HostAssignment>> assignments;  ///< By agent; node rank order.
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
using MemberAction = std::variant<PublishAssignments, PublishRecord, RefuseAgent>;

/// A new leader begins without agents; it learns the past from their join requests.
MembershipState begin_membership(MembershipRules rules, JobTime now);

/// Changes `state` according to `event` and returns the necessary actions, in this order.
std::vector<MemberAction> advance(MembershipState* state, const MemberEvent& event, JobTime now);

/// The present state of the job, for a new leader: workers of a generation whose record is not
/// "running" end.
JobRecord record_of(const MembershipState& state);

/// When JobTimePassed must come; nothing: never.
std::optional<JobTime> act_at(const MembershipState& state);

}  // namespace lockstep::inline internal
