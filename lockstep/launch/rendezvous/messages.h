#pragma once
// What agents write for each other. An agent's offer, which is its held key, says all about itself,
// so that a new leader learns all there is to know from the offers; the leader writes a plan for
// each node of a generation, and how the job stands.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/auth.h"
#include "lockstep/base/socket.h"
#include "lockstep/launch/job/failure.h"
#include "lockstep/world/worker_env.h"

namespace lockstep {

// Bounds of what agents tell each other: those of the command line.
inline constexpr int kMaxPort = 65535;
inline constexpr int kMaxNodes = 1 << 20;
inline constexpr int kMaxLocalRanks = 1 << 16;
/// No job has as many, and sums with it stay far from the end of the range.
inline constexpr int64_t kMaxGeneration = int64_t{1} << 53;
inline constexpr int kMaxRestarts = 1 << 30;
inline constexpr int kMaxSuccessors = 8;

/// What the workers of an agent's last generation do.
enum class NodeWork : uint8_t {
  kIdle,  ///< There are none (any more).
  kBusy,  ///< They run, or are being ended.
  kDone,  ///< All have ended well.
};

struct JoinRequest {
  std::string host;              ///< For messages.
  std::string address;           ///< At which other nodes reach this one.
  int store_port = 0;            ///< Where it serves the workers' store, should it become node 0.
  int torch_port = 0;            ///< Kept free for torch's own store, likewise.
  int place_port = 0;            ///< Where it serves the meeting place, should it take over.
  int local_size = 1;            ///< Ranks it runs.
  std::string role;              ///< ROLE_NAME of its ranks.
  std::string program;           ///< Its ranks' (program_name()); equal on all nodes of a role.
  std::string mark;              ///< secret_mark(); equal on all nodes.
  std::optional<int> node_rank;  ///< Asked for by the user.
  int min_nodes = 1;             ///< What its command line says; equal on all nodes.
  int max_nodes = 1;

  int64_t generation = 0;  ///< The last it has taken part in; 0: none.
  int last_rank = -1;      ///< Its node rank in that.
  int num_nodes = 0;       ///< Of that.
  int restart_count = 0;   ///< Of that, as all to failures_in_a_row: see NodePlan.
  std::string token;
  bool stepped = false;  ///< Also when its own workers have made steps since.
  int early_failures = 0;
  int failures_in_a_row = 0;
  NodeWork work = NodeWork::kIdle;
  int leaving = 0;  ///< The signal by which the user ends this node; 0: none.

  bool operator==(const JoinRequest&) const = default;
};

/// By which those who share a secret and a wire know each other where a place lets anybody in, as
/// etcd does. It does not tell the secret.
std::string secret_mark(std::string_view secret, Wire wire = Wire::kPlain);

/// Longest text of an offer; a longer one is refused unread.
inline constexpr size_t kMaxOfferBytes = 4096;

/// One JSON object, of at most kMaxOfferBytes.
std::string to_json(const JoinRequest& offer);
/// Errors: kCorrupt (not an offer, a member is missing or out of range).
JoinRequest offer_from_json(std::string_view text);

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

/// As the agent that runs its workers needs it; host, secret and wire are the agent's own.
JobPlan job_plan(const NodePlan& plan);

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
