#pragma once
// How the agents of several nodes learn each other's end.

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/base/mutex.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/launch/agent/failure.h"
#include "lockstep/launch/agent/heartbeat.h"
#include "lockstep/launch/agent/worker_env.h"
#include "lockstep/store/store.h"

namespace lockstep {

/// Talks to the other agents through the job's store, from a thread of its own; the agent's loop
/// polls fd() and then asks. The first failure of the job is the first that reaches the store: all
/// agents report that one.
///
/// Each agent's heart beats in the store; node 0's agent watches them, and its own death is seen by
/// the others as the loss of the store.
class JobWatch {
 public:
  JobWatch(std::shared_ptr<Store> store, const JobPlan& plan);
  ~JobWatch();  ///< Node 0: waits a moment until all have heard of the end, as it serves the store.
  JobWatch(const JobWatch&) = delete;
  JobWatch& operator=(const JobWatch&) = delete;

  int fd() const { return wake_.get(); }  ///< Readable when there are news.
  void clear();                           ///< Makes fd() wait for further news.

  std::optional<Failure> failure() const;  ///< The job's first failure, once known.
  bool all_succeeded() const;              ///< On all nodes.

  /// Takes up to some seconds when the store hangs. Never throws.
  void publish(const Failure& failure);
  void publish_success();

 private:
  void run();
  void look(uint64_t* version);
  void take(const Store::Change& change);
  void beat();
  void check_others();
  void record(const Failure& failure);
  Failure lost_agent(int node) const;

  const std::shared_ptr<Store> store_;
  const JobPlan plan_;
  UniqueFd wake_;
  mutable Mutex mutex_;
  std::optional<Failure> failure_ LOCKSTEP_GUARDED_BY(mutex_);
  std::vector<bool> succeeded_ LOCKSTEP_GUARDED_BY(mutex_);
  HeartbeatTable hearts_;  // the thread's own
  int64_t beats_ = 0;      // the thread's own
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace lockstep
