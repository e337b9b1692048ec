#pragma once
// An agent's membership thread: publishes the agent's state, follows the leader's decisions, and
// leads if that becomes its role. Everything but stop() runs in the thread that calls run().

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/launch/job/run_options.h"
#include "lockstep/launch/rendezvous/agent_status.h"
#include "lockstep/launch/rendezvous/job_status_view.h"
#include "lockstep/launch/rendezvous/leader.h"
#include "lockstep/launch/rendezvous/rendezvous_backend.h"
#include "lockstep/launch/rendezvous/search.h"
#include "lockstep/launch/rendezvous/silence.h"
#include "lockstep/launch/rendezvous/workers_store.h"

namespace lockstep::inline internal {

class MembershipClient {
 public:
  MembershipClient(const RunOptions& options, const std::string& secret, RendezvousBackend* backend,
                   WorkersStore* workers, AgentStatus* status);

  /// Takes part until the job is over, or until stop(). Never throws: `status` has the outcome.
  void run();
  /// From any thread: ends run() within a heartbeat, after the latest status has been read.
  void stop() { stopping_ = true; }
  /// After run(): it ended because the job did.
  bool saw_end() const { return saw_end_; }

 private:
  struct Moved {
    Endpoint where;
  };
  /// Time to find the new leader after the last one's loss is noticed.
  static constexpr std::chrono::milliseconds kWayLimit{1000};

  void take_part();
  bool over() const { return saw_end_ || stopping_; }
  Deadline next_look() const;
  Deadline soon() const;
  template <class Call>
  bool in_parts(const Call& call);
  bool lease_lead();
  KeyValueStore::Changes watch(Deadline until);
  void keep_fence();
  void try_to_lead();
  void apply_changes(const KeyValueStore::Changes& changes);
  void send_heartbeat();
  void join_if_open();

  void follow();
  void on_running(const JobRecord& record);
  std::optional<Failure> failure_of(int64_t generation);
  void on_forming(const JobRecord& record);
  void stop_work(const std::optional<Failure>& failure, const std::string& why,
                 std::optional<AgentStatus::Time> kill_by = std::nullopt);
  void begin(const HostAssignment& assignment);
  void warn_of_another_command() const;
  void look_elsewhere();

  void reopen(const std::optional<Endpoint>& moved, const std::string& why);
  bool go_to(const Endpoint& where);
  bool rejoin();
  void end_with_loss();
  MembershipRules rules() const;
  Endpoint own_endpoint() const;
  bool own_generation_runs() const;

  const RunOptions options_;
  const std::string secret_;
  RendezvousBackend* const backend_;
  WorkersStore* const workers_;
  AgentStatus* const status_;
  std::atomic<bool> stopping_{false};
  bool saw_end_ = false;

  std::shared_ptr<KeyValueStore> store_;
  uint64_t version_ = 0;
  bool requested_ = false;
  std::optional<JobStatusView> status_view_;
  std::optional<Leader> leader_;
  bool leader_began_ = false;
  std::string term_;  ///< leader_'s.
  OtherEndpoints others_;
  Contact contact_;
  JobTime alone_until_{};  ///< Until then a silent server may still lead workers.
  Deadline next_heartbeat_ = Deadline::after(std::chrono::milliseconds(0));
  std::string shown_;  ///< The last text shown to the user, so that nothing is shown twice.

  std::optional<HostAssignment> assignment_;  ///< The last assignment.
};

}  // namespace lockstep::inline internal
