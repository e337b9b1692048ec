#pragma once
// Messages between agents. An agent's join request, its leased key, contains all about the agent,
// so that a new leader learns everything from the join requests. The leader writes an assignment
// for each host of a generation, and a record of the job's state.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/auth.h"
#include "lockstep/launch/job/failure.h"
#include "lockstep/world/worker_env.h"

namespace lockstep::inline internal {

// Bounds of members: those of the command line.
inline constexpr int kMaxPort = 65535;
inline constexpr int kMaxHosts = 1 << 20;
inline constexpr int kMaxLocalRanks = 1 << 16;
/// More than any job has; sums with it cannot overflow.
inline constexpr int64_t kMaxGeneration = int64_t{1} << 53;
inline constexpr int kMaxRestarts = 1 << 30;
inline constexpr int kMaxSuccessors = 8;

/// State of the workers of an agent's last generation.
enum class HostWork : uint8_t {
  kIdle,  ///< There are none (any more).
  kBusy,  ///< They run, or are being ended.
  kDone,  ///< All have ended well.
};

struct JoinRequest {
  std::string host;              ///< For messages.
  std::string address;           ///< By which other hosts reach this one.
  int store_port = 0;            ///< Port of the workers' store if it becomes host 0.
  int torch_port = 0;            ///< Of torch's own store, likewise.
  int takeover_port = 0;         ///< Where it serves the store if it takes over.
  int local_size = 1;            ///< Ranks it runs.
  std::string role;              ///< ROLE_NAME of its ranks.
  std::string program;           ///< Its ranks' (program_name()); equal on all hosts of a role.
  std::string mark;              ///< secret_mark(); equal on all hosts.
  std::string command;           ///< text_mark() of program_and_arguments().
  std::string folder;            ///< text_mark() of the working folder.
  std::string host_id;           ///< this_host_id(); empty: unknown.
  bool named = false;            ///< The user gave an --rdzv_id.
  std::optional<int> node_rank;  ///< Requested by the user.
  int min_nodes = 1;             ///< From its command line; equal on all hosts.
  int max_nodes = 1;

  int64_t generation = 0;  ///< The last one it has taken part in; 0: none.
  int last_rank = -1;      ///< Its node rank in that generation.
  int num_nodes = 0;       ///< Of that generation.
  /// Of that generation, as all down to failures_in_a_row: see HostAssignment.
  int restart_count = 0;
  std::string token;
  bool stepped = false;  ///< Also true if its own workers have made steps since.
  int early_failures = 0;
  int failures_in_a_row = 0;
  HostWork work = HostWork::kIdle;
  int leaving = 0;  ///< The signal by which the user ends this host; 0: none.
  /// The leader's term that the agent knew when it wrote this. A leader counts only agents that
  /// wrote in its term: the key of a killed agent lasts for its time to live.
  std::string term;

  bool operator==(const JoinRequest&) const = default;
};

/// Identifies agents with the same secret and wire in a store that admits anybody, such as etcd. It
/// does not reveal the secret.
std::string secret_mark(std::string_view secret, Wire wire = Wire::kPlain);

/// Identifies a text among agents with the same secret. It reveals neither the text nor the secret.
std::string text_mark(std::string_view secret, std::string_view text);

/// Longest text of a join request; a longer one is refused without parsing.
inline constexpr size_t kMaxJoinRequestBytes = 4096;

/// One JSON object, of at most kMaxJoinRequestBytes.
std::string to_json(const JoinRequest& request);
/// Errors: kCorrupt (not a join request, a member is missing or out of range).
JoinRequest join_request_from_json(std::string_view text);

/// One host's part of a generation. Its size does not depend on the number of hosts.
struct HostAssignment {
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
  RanksOfHost ranks;
  Endpoint store;  ///< The workers', which host 0's agent serves.
  Endpoint torch;  ///< Torch's own store: see TorchStorePort.
  /// Endpoints of the hosts that may take over, in this order: the first hosts', at most 8.
  std::vector<Endpoint> successors;
};

/// The assignment for the agent that runs its workers; host, secret and wire are the agent's own.
JobAssignment job_assignment(const HostAssignment& assignment);

/// The job's state, which all agents watch.
struct JobRecord {
  enum class State : uint8_t {
    kForming,  ///< Generation `generation` + 1 waits for hosts.
    kRunning,  ///< Generation `generation` runs; agents with an assignment for it take part.
    kLeaving,  ///< Its workers must end, so that another can form.
    kEnded,    ///< There will be no other.
  };
  State state = State::kForming;
  int64_t generation = 0;
  int restart_count = 0;
  std::string awaited;  ///< kForming: the missing hosts, once that takes long.
  /// kLeaving, then kForming, or kEnded: the failure that caused it, if any.
  std::optional<Failure> failure;
  std::string why;  ///< kLeaving, kForming: any other reason. kEnded: why there is no restart.
  /// kLeaving, kForming: too few agents are left to go on. Others may go on elsewhere, so workers
  /// are killed at once.
  bool at_once = false;
  /// The leader's own, as in its join request. An agent with another command warns.
  std::string role;
  std::string command;
  bool named = false;
  std::string by;          ///< The leader's term; a record of another one is out of date.
  int64_t num_agents = 0;  ///< Present agents; it determines each one's heartbeat interval.
};

/// Longest texts; longer ones are refused without parsing. A failure has the end of a worker's
/// stderr.
inline constexpr size_t kMaxAssignmentBytes = 8192;
inline constexpr size_t kMaxRecordBytes = 1 << 18;

std::string to_json(const HostAssignment& assignment);
std::string to_json(const JobRecord& record);
/// Errors: kCorrupt (not such a message, a member is missing or out of range).
HostAssignment host_assignment_from_json(std::string_view text);
JobRecord job_record_from_json(std::string_view text);

}  // namespace lockstep::inline internal
