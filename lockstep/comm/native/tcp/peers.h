#pragma once
// The connections of one group with ranks of other hosts.
//
// Each is made on first use. So a rank has as many descriptors as peers with which it communicates,
// and an unused group has none. Connections of most collectives serve both directions, and both
// ends request them in the same call (meet()). Others are made for one direction by the sending
// end: connect() at one end, expect() and take() at the other, without a call there. A rank that
// waits for a connection has made its own to the peer. The end of that shows at once that the peer
// has died, or left the group. Until the peer has answered, the store shows it: another process may
// have taken a dead rank's port, or hold its socket, and never answer.
//
// Groups share no connections, not even groups of the same ranks. There are three ways to share
// one:
// - Data of a group waits behind that of another whose receiver is late. Two threads that use both
//   groups in different order then wait for each other.
// - The receiving end keeps whatever comes. Nothing bounds its memory then.
// - As MPI does: small messages go at once, into memory of a fixed size. A large one is announced,
//   and goes when the receiver asks for it. That costs a round trip for each large message. It also
//   takes a thread that reads for all groups, where now the caller waits for its own sockets.
// The first two are wrong, and the third is slower. A group of its own costs a socket for each host
// that it talks to, and nothing while it is unused.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/unique_fd.h"
#include "lockstep/comm/native/tcp/reception.h"
#include "lockstep/deadline.h"

namespace lockstep::tcp {

/// Called some ten times per second during a wait for a connection; may throw to end the wait.
using Look = std::function<void()>;

using LookAt = std::function<bool(const std::vector<int>& awaited)>;

class Peers {
 public:
  /// Ranks are the group's, except in `world_ranks`.
  struct Group {
    std::shared_ptr<Reception> reception;
    std::string name;  ///< Unique in the job.
    std::string secret;
    int rank = 0;
    std::vector<int> world_ranks;
    std::vector<std::string> endpoints;  ///< By rank: Reception::endpoint().
    /// The reason why the rank of the world will never answer ("it died"); empty: it may answer.
    /// Called in a wait for an answer, less often in larger groups. Any thread. May be unset.
    std::function<std::string(int world_rank)> why_silent = {};
  };

  explicit Peers(Group group);
  /// For a group that could not be made: as end(). Members that have made it connect to this rank;
  /// Reception would keep those connections for a group that never comes.
  static void forgo(Reception& reception, const std::string& secret, const std::string& name);
  /// As end().
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  /// A connection to `peer`. Any thread. Errors: kPeerLost (the peer does not listen any more, its
  /// group has ended, or Group::why_silent), kTimeout, kMismatch (other build, wrong secret); all
  /// name both ranks. Cost: two round trips.
  UniqueFd connect(int peer, Deadline deadline, const Look& look = {}) const;
  /// The connection that `peer` made, or none yet. Any thread.
  UniqueFd take(int peer) const;
  /// See Reception::expect(). Any thread.
  int expect(int peer) const;

  /// Makes one connection for both directions with each of `peers`. Each of them must name this
  /// rank once among its own. The first to come connects; if both have, the connection of the
  /// higher rank counts, and the other is closed. Returns when all of them have called it. The
  /// result is by rank, empty if there is none. `look` receives the awaited peers, also before the
  /// first wait; if it returns false, the wait times out. Errors: as connect(), kPeerLost (a peer
  /// died or left meanwhile), and kTimeout, which names the peers without a connection.
  std::vector<UniqueFd> meet(std::span<const int> peers, Deadline deadline,
                             const LookAt& look = {}) const;

  /// Peers that still connect find the group ended, also those whose connection was not taken. Any
  /// thread.
  void end() const;

 private:
  struct Half;
  class Encounter;

  int named(int rank) const { return group_.world_ranks[static_cast<size_t>(rank)]; }
  Look watching(int peer, const Look& look) const;
  [[noreturn]] void throw_left(int peer) const;

  const Group group_;
  const Digest digest_;
};

/// Makes it non-blocking and sets these options. TCP_NODELAY: a step's last message must not wait
/// for more data. Keep-alive: no firewall forgets the connection. TCP_USER_TIMEOUT of a day: calls
/// have their own timeouts, and the kernel's clock runs on while a job with its readers is frozen.
/// Congestion control is cubic, or reno if cubic is not allowed. Kernels with BBR as default, on
/// devices without the fq queue, pace in software timers. That halves a single stream on a fast
/// link (measured: 11.6 against 23.7 Gbit/s). BBR pays on lossy wide-area links only. Buffers are
/// left to the kernel's autotuning: SO_RCVBUF would cap them at net.core.rmem_max.
void tune_socket(int fd);

}  // namespace lockstep::tcp
