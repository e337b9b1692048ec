#pragma once
// Where the agents of a job meet: how an agent comes to the store through which they talk, at the
// beginning and when it is lost. Used by one thread.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/socket.h"
#include "lockstep/deadline.h"
#include "lockstep/launch/job/run_options.h"
#include "lockstep/store.h"

namespace lockstep {

class MeetingPlace {
 public:
  virtual ~MeetingPlace() = default;

  /// The job's store: serves it where that falls to this agent, else connects to it.
  /// Errors: kTimeout (nobody serves it), kMismatch (another job, another secret),
  /// kInvalidArgument, kUnavailable.
  virtual std::shared_ptr<Store> open(Deadline deadline) = 0;

  /// Who could serve the store after it was lost, and which of them is this agent.
  struct Candidates {
    std::vector<Endpoint> in_order;
    size_t own = SIZE_MAX;
  };
  /// The same after the store was lost: the first of the candidates that answers, or this agent
  /// itself where none before it does. Without candidates it is open(). Null when `stop` is set.
  virtual std::shared_ptr<Store> reopen(const Candidates& candidates, const std::atomic<bool>& stop,
                                        Deadline deadline) = 0;

  /// The same store again, where only the connection to it ended. Null: nobody serves there any
  /// more, or none has answered when the deadline passed, or `stop` is set.
  virtual std::shared_ptr<Store> rejoin(const std::atomic<bool>& stop, Deadline deadline) {
    (void)stop;
    (void)deadline;
    return nullptr;
  }
  /// After a loss: that host says that nobody serves there, so who did is dead, not cut off. Takes
  /// half a second where it says nothing.
  virtual bool nobody_serves() { return false; }
  /// Signs of life there are renewals of a lease, which cost all who share the service.
  virtual bool by_lease() const { return false; }

  /// Whether this agent is one of those that may lead the job there.
  virtual bool may_lead() const = 0;
  /// This host's address as the others there see it, and where to listen for them.
  virtual std::string own_address() const = 0;
  virtual std::string listen_host() const = 0;
  /// Where others find this agent if it takes over; port 0: not at all.
  virtual int own_port() const = 0;
  /// Where the agent that serves has to look for others of its job: the endpoint, unless it serves
  /// there itself.
  virtual std::optional<Endpoint> elsewhere() const = 0;
  /// Where the store is that was opened last; host empty: not at one address.
  virtual Endpoint endpoint() const = 0;

  /// For messages: "10.0.0.1:29400".
  virtual std::string name() const = 0;
  /// What it means that it is lost, in one line.
  virtual std::string loss() const = 0;
  /// How long a call there may take until it counts as lost.
  virtual std::chrono::milliseconds call_limit() const = 0;

  /// Lets others read their last news before the store goes.
  virtual void close(Deadline deadline) = 0;
};

/// By options.rdzv_backend. Errors: kInvalidArgument (no secret where one is needed; port taken).
std::unique_ptr<MeetingPlace> make_place(const RunOptions& options, const std::string& secret);

}  // namespace lockstep
