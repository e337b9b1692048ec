#pragma once
// How ranks of different hosts find each other and prove that they belong together.
//
// Every rank listens on a port that the kernel chooses, publishes "HOST:PORT" in the store,
// connects to its peers of lower rank and accepts those of higher rank; since lower ranks finish
// connecting first, nobody waits in a circle. A connection counts once both ends have proved the
// job secret (base/auth.h, purpose "comm") and agreed on group and ranks. A foreign connection
// (port scan, other job, other group, silence) is dropped and the rest goes on: reading starts only
// when a whole greeting is there, so a silent stranger delays nobody.
//
// All connections are made when the group is made, none later: errors show at once, the first
// collective costs what every one costs, and the port is closed again before training starts.
// Cost: one connection and about 0.2 ms a pair of ranks on different hosts. For thousands of ranks
// that is too many (a rank would hold one descriptor and up to some MiB of kernel buffer per peer,
// and direct exchange sends P - 1 messages a step); then hosts are to be joined by a tree of
// connections with one level per switch, which costs log(P) steps and is slower below some hundred
// ranks.

#include <span>
#include <string>
#include <vector>

#include "lockstep/base/unique_fd.h"
#include "lockstep/store/store.h"

namespace lockstep::tcp {

struct Rendezvous {
  Store& store;         ///< Keys are "GROUP/tcp/RANK".
  std::string group;    ///< Unique in the job.
  std::string address;  ///< Where the peers reach this rank.
  std::string secret;   ///< Empty: loopback addresses only.
  int rank = 0;
  int size = 0;
  std::vector<int> world_ranks = {};  ///< By rank, for messages; empty: the same numbers.
};

/// Connects this rank with `peers` (each of which must name this rank among its own). Returns
/// `self.size` sockets by rank, empty where there is no connection. Errors: kTimeout naming the
/// ranks that did not come, kMismatch (other build, wrong secret), kInvalidArgument (no secret and
/// not a loopback address).
std::vector<UniqueFd> connect_peers(const Rendezvous& self, std::span<const int> peers,
                                    Deadline deadline);

/// Non-blocking; TCP_NODELAY, because a step's last message must not wait for more; keep-alive, and
/// TCP_USER_TIMEOUT of `patience` (3 s to a day), so that a host that vanished is known by then
/// although it sends no reset; a shorter one would end slow readers too. Congestion control cubic,
/// or reno where cubic is not allowed: kernels whose default is BBR but whose devices lack the fq
/// queue pace in software timers, which halves a single stream on a fast link (measured: 11.6
/// against 23.7 Gbit/s), and BBR pays on lossy wide-area links only. Buffers are left to the
/// kernel's autotuning: SO_RCVBUF would cap them at net.core.rmem_max.
void tune_socket(int fd, std::chrono::milliseconds patience);

}  // namespace lockstep::tcp
