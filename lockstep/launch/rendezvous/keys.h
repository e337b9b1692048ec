#pragma once
// The keys in the rendezvous store; docs/design/rendezvous.md lists their writers.

#include <cstdint>
#include <string>

namespace lockstep::keys {

inline const std::string kJob = "job";              ///< Built in: the run's name, written first.
inline const std::string kLive = "live/";           ///< Watched by the leader.
inline const std::string kStatus = "live/status/";  ///< Watched by every agent.
inline const std::string kAgents = "live/agent/";
inline const std::string kLeader = "live/status/leader";
inline const std::string kRecord = "live/status/generation";
inline const std::string kFailures = "live/status/failure/";
inline const std::string kRefused = "live/status/refused/";
inline const std::string kMoved = "live/status/moved";  ///< Where the job goes on.
inline const std::string kAssignments = "assignment/";

/// Whether two names of a run, such as the value of kJob, are those of one job. Agents without a
/// name join any.
inline bool is_same_job(const std::string& one, const std::string& other) {
  return one.empty() || other.empty() || one == other;
}

inline std::string agent(const std::string& id) {
  return kAgents + id;
}
inline std::string failure(int64_t generation) {
  return kFailures + std::to_string(generation);
}
inline std::string refused(const std::string& id) {
  return kRefused + id;
}
inline std::string assignment(const std::string& id) {
  return kAssignments + id;
}

}  // namespace lockstep::keys
