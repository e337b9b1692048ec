#pragma once
// The connections of one group with ranks of other hosts.
//
// All are made when they are first needed, so that a rank has as many descriptors as it has peers
// to talk to, and a group that is not used has none. Those that most collectives use serve both
// directions, and both ends ask for them in the same call (meet()). Others are made for one
// direction by the end that sends: connect() at one end, expect() and take() at the other, without
// a call there. Whoever waits for a connection has made its own to the peer, by whose end it knows
// at once that the peer has died, or left the group.
//
// Groups share none, not even groups of the same ranks: what one sends would have to wait where the
// other's receiver is late, or be kept in memory.

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/unique_fd.h"
#include "lockstep/comm/native/tcp/reception.h"
#include "lockstep/deadline.h"

namespace lockstep::tcp {

/// Called some ten times a second while a connection is waited for; may throw to end the wait.
using Look = std::function<void()>;

using LookAt = std::function<bool(const std::vector<int>& awaited)>;

class Peers {
 public:
  /// Ranks are the group's, but in `world_ranks`.
  struct Group {
    std::shared_ptr<Reception> reception;
    std::string name;  ///< Unique in the job.
    std::string secret;
    int rank = 0;
    std::vector<int> world_ranks;
    std::vector<std::string> endpoints;  ///< By rank: Reception::endpoint().
  };

  explicit Peers(Group group);
  /// For one that could not be made: as end(). Members that have made it connect to this rank,
  /// whose Reception would keep that for a group that never comes.
  static void forgo(Reception& reception, const std::string& secret, const std::string& name);
  /// As end().
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  /// A connection to `peer`. Any thread. Errors: kPeerLost (nobody listens there any more, or the
  /// peer's group has ended), kTimeout, kMismatch (other build, wrong secret); all name both ranks.
  /// Cost: two round trips.
  UniqueFd connect(int peer, Deadline deadline, const Look& look = {}) const;
  /// That which `peer` made, or none yet. Any thread.
  UniqueFd take(int peer) const;
  /// See Reception::expect(). Any thread.
  int expect(int peer) const;

  /// One connection for both directions with each of `peers`, each of which must name this rank
  /// among its own, and once only. Who comes first connects; where both have, the connection of the
  /// higher rank counts, and the other is closed. Returns when all of them have called it. By rank,
  /// empty where there is none. `look` is given the peers that are waited for, also before the
  /// first wait; where it returns false, time is over. Errors: as connect(), kPeerLost (a peer died
  /// or left while it was waited for), and kTimeout naming those with which there is no connection.
  std::vector<UniqueFd> meet(std::span<const int> peers, Deadline deadline,
                             const LookAt& look = {}) const;

  /// Peers that still connect find the group ended, also those that have and were not taken. Any
  /// thread.
  void end() const;

 private:
  struct Half;
  class Encounter;

  int named(int rank) const { return group_.world_ranks[static_cast<size_t>(rank)]; }
  [[noreturn]] void throw_left(int peer) const;

  const Group group_;
  const Digest digest_;
};

/// Returns true when `fd` is readable, false when the deadline passes first.
bool await_readable(int fd, Deadline deadline, const Look& look);

/// Non-blocking; TCP_NODELAY, because a step's last message must not wait for more; keep-alive, so
/// that no firewall forgets the connection; TCP_USER_TIMEOUT of a day: how long may be waited,
/// calls say themselves, and the kernel's clock goes on while a job is frozen whose readers are.
/// Congestion control cubic, or reno where cubic is not allowed: kernels whose default is BBR but
/// whose devices lack the fq queue pace in software timers, which halves a single stream on a fast
/// link (measured: 11.6 against 23.7 Gbit/s), and BBR pays on lossy wide-area links only. Buffers
/// are left to the kernel's autotuning: SO_RCVBUF would cap them at net.core.rmem_max.
void tune_socket(int fd);

}  // namespace lockstep::tcp
