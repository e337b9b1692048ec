#pragma once
// State shared by an agent's loop and its membership thread. Each side has its half of the calls;
// all are thread-safe.

#include <memory>
#include <optional>
#include <string>

#include "lockstep/base/mutex.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/error.h"
#include "lockstep/launch/rendezvous/messages.h"
#include "lockstep/launch/rendezvous/rendezvous.h"
#include "lockstep/store.h"

namespace lockstep::inline internal {

class AgentStatus {
 public:
  /// `id`: this agent's, in the rendezvous store.
  AgentStatus(std::string id, JoinRequest request);

  // ---- for the agent's loop; documented in Rendezvous
  std::optional<JobAssignment> wait_for_assignment();
  int fd() const { return wake_.get(); }
  JobStatus job_status();
  std::optional<JobAssignment> next();
  void failed(const Failure& failure);
  void ended_work(HostWork work, bool stepped = false);
  void leave(int signal);

  // ---- for the thread
  /// Sets the store to write to from now on; null: none.
  void use(std::shared_ptr<KeyValueStore> store);
  /// Publishes this agent's join request (again), as a leased key. False if our own previous
  /// connection still has the lease. Nothing if the other thread is just writing: that thread then
  /// writes once more, and the outcome is not known yet. Errors: those of the store.
  std::optional<bool> publish(std::chrono::milliseconds ttl, Deadline deadline);
  void take_assignment(JobAssignment assignment);
  /// The generation is over. True if its assignment had not been fetched yet: it is void then, and
  /// this agent's join request has changed. `kill_by`: see JobStatus; a later call may give an
  /// earlier time.
  using Time = std::chrono::steady_clock::time_point;
  bool stop_work(const std::optional<Failure>& failure, const std::string& why,
                 std::optional<Time> kill_by = std::nullopt);
  void end(const JobEnd& end);
  void fail(const Error& error);
  void change_ports(int store_port, int torch_port);
  /// Whether the join request names another term than before.
  bool change_term(const std::string& term);

  /// Repeats a failed() that could not be written: a store that was only slow must still learn of
  /// it. Errors: those of the store.
  void publish_failure(Deadline deadline);

  JoinRequest join_request() const;
  const std::string& id() const { return id_; }

 private:
  JobAssignment fetch() LOCKSTEP_REQUIRES(mutex_);  ///< Requires assignment_.
  void publish_quietly();
  bool write_join_request(std::chrono::milliseconds ttl, Deadline deadline);
  bool published_all();
  void wake() LOCKSTEP_REQUIRES(mutex_);

  const std::string id_;
  const UniqueFd wake_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::shared_ptr<KeyValueStore> store_ LOCKSTEP_GUARDED_BY(mutex_);
  std::chrono::milliseconds ttl_ LOCKSTEP_GUARDED_BY(mutex_){2000};
  bool published_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  /// request_ is being written: one thread at a time, so that an older one never comes last.
  bool publishing_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  bool publish_again_ LOCKSTEP_GUARDED_BY(mutex_) = false;  ///< The join request has changed since.
  JoinRequest request_ LOCKSTEP_GUARDED_BY(mutex_);
  std::optional<JobAssignment> assignment_ LOCKSTEP_GUARDED_BY(mutex_);  ///< Not fetched yet.
  JobStatus job_status_ LOCKSTEP_GUARDED_BY(mutex_);
  struct PendingFailure {
    int64_t generation = 0;
    std::string text;
  };
  std::optional<PendingFailure> pending_failure_ LOCKSTEP_GUARDED_BY(mutex_);  ///< To be written.
  std::optional<Error> error_ LOCKSTEP_GUARDED_BY(mutex_);
};

}  // namespace lockstep::inline internal
