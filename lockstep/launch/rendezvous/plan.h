#pragma once
// What the leader tells the agents: each its own part of a generation, all how the job stands.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/socket.h"
#include "lockstep/launch/job/failure.h"
#include "lockstep/world/rank_plan.h"

namespace lockstep {

/// One node's part of a generation. Its size does not depend on the number of nodes.
struct NodePlan {
  int64_t generation = 0;
  std::string token;  ///< base/generation_token.h.
  int restart_count = 0;
  int early_failures = 0;  ///< These three as RestartRecord has them, for a new leader.
  int failures_in_a_row = 0;
  bool stepped = false;
  int max_restarts = 0;
  std::string run_id;
  int node_rank = 0;
  int num_nodes = 1;
  int world_size = 1;
  NodeRanks ranks;
  Endpoint store;  ///< The workers', which node 0's agent serves.
  Endpoint torch;  ///< For torch's own store, which rank 0 serves.
  /// Meeting places of the nodes that may take over, in this order: the first nodes', at most 8.
  std::vector<Endpoint> successors;
};

/// How the job stands: what all agents watch.
struct JobRecord {
  enum class State : uint8_t {
    kForming,  ///< Generation `generation` + 1 waits for nodes.
    kRunning,  ///< Generation `generation` runs, those with a plan for it take part.
    kLeaving,  ///< Its workers are to end, so that another can form.
    kEnded,    ///< There will be no other.
  };
  State state = State::kForming;
  int64_t generation = 0;
  int restart_count = 0;
  std::string awaited;  ///< kForming: whom the job waits for, once that takes long.
  /// kLeaving, and kForming after it: why, where that is why. kEnded: likewise.
  std::optional<Failure> failure;
  std::string why;  ///< kLeaving, kForming: why else. kEnded: why there is no restart.
  /// kLeaving, kForming: fewer are left than may go on, so others may do that elsewhere: workers
  /// are killed at once.
  bool at_once = false;
  std::string by;          ///< The agent that leads: another's record is an earlier job's.
  int64_t num_agents = 0;  ///< That are here: how often each gives a sign of life follows from it.
};

/// Longest texts; longer ones are refused unread. A failure has the end of a worker's stderr.
inline constexpr size_t kMaxPlanBytes = 8192;
inline constexpr size_t kMaxRecordBytes = 1 << 18;

std::string to_json(const NodePlan& plan);
std::string to_json(const JobRecord& record);
/// Errors: kCorrupt (not such a message, a member is missing or out of range).
NodePlan node_plan_from_json(std::string_view text);
JobRecord job_record_from_json(std::string_view text);

}  // namespace lockstep
