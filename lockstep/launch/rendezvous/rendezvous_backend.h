#pragma once
// How an agent opens the rendezvous store, through which the agents of a job communicate, at the
// beginning and after a loss. Used by one thread.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/deadline.h"
#include "lockstep/launch/job/run_options.h"
#include "lockstep/store.h"

namespace lockstep::inline internal {

/// After this time the user is told what this agent waits for.
inline constexpr std::chrono::seconds kReportSearchAfter{5};

class RendezvousBackend {
 public:
  virtual ~RendezvousBackend() = default;

  /// Opens the rendezvous store: serves it if this agent's role is to serve, else connects to it.
  /// Errors: kTimeout (nobody serves it), kMismatch (another job, another secret),
  /// kInvalidArgument, kUnavailable.
  virtual std::shared_ptr<KeyValueStore> open(Deadline deadline) = 0;

  /// Agents that could serve the store after its loss, and the index of this one.
  struct Candidates {
    std::vector<Endpoint> in_order;
    size_t own = SIZE_MAX;
  };
  /// Reopens the store after its loss: connects to the first candidate that answers, or serves if
  /// none before this agent does. Without candidates same as open(). Null if `stop` is set.
  virtual std::shared_ptr<KeyValueStore> reopen(const Candidates& candidates,
                                                const std::atomic<bool>& stop,
                                                Deadline deadline) = 0;

  /// Reconnects to the same store if only the connection ended. Null: nobody serves there any more,
  /// or none has answered by the deadline, or `stop` is set.
  virtual std::shared_ptr<KeyValueStore> rejoin(const std::atomic<bool>& stop, Deadline deadline) {
    (void)stop;
    (void)deadline;
    return nullptr;
  }
  /// Keeps the numeric addresses of the store that was opened last: the calls below need no look-up
  /// then. After a loss the name servers may be out of reach too, and a look-up may last longer
  /// than this host's workers may run.
  virtual void remember_addresses() {}
  /// After a loss: the host reports that nothing serves there, so the server is dead and not cut
  /// off. Takes half a second if the host is silent.
  virtual bool nobody_serves() { return false; }
  /// Heartbeats to the store are renewals of a lease, which cost all users of the service.
  virtual bool by_lease() const { return false; }

  /// Whether this agent may lead the job.
  virtual bool may_lead() const = 0;
  /// This host's address as the other agents see it, and the address to listen on for them.
  virtual std::string own_address() const = 0;
  virtual std::string listen_host() const = 0;
  /// Port of this agent if it takes over; 0: it cannot.
  virtual int own_port() const = 0;
  /// Where a serving agent looks for others of its job: the endpoint, unless it serves there
  /// itself.
  virtual std::optional<Endpoint> elsewhere() const = 0;
  /// Address of the store that was opened last; host empty: it has no single address.
  virtual Endpoint endpoint() const = 0;

  /// For messages: "10.0.0.1:29400".
  virtual std::string name() const = 0;
  /// The meaning of the store's loss, in one line.
  virtual std::string loss() const = 0;
  /// How long a call to the store may take until it counts as lost.
  virtual std::chrono::milliseconds call_limit() const = 0;

  /// Lets others read the job's last status before the store ends.
  virtual void close(Deadline deadline) = 0;
};

/// Chosen by options.rdzv_backend. Errors: kInvalidArgument (no secret although one is needed; port
/// taken).
std::unique_ptr<RendezvousBackend> make_rendezvous_backend(const RunOptions& options,
                                                           const std::string& secret);

}  // namespace lockstep::inline internal
