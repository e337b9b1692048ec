#pragma once
// Point to point between ranks of different hosts.

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/deadline.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/comm/native/phase.h"
#include "lockstep/comm/native/tcp/message.h"

namespace lockstep::tcp {

/// What a receiver keeps, per peer, of letters that came before the one it waits for.
inline constexpr int64_t kMaxEarlyBytes = int64_t{256} << 20;

/// One connection a peer, apart from those of the collectives, so that sends and receives of other
/// threads need no agreement with a collective that is under way. One thread a peer and direction.
///
/// send() returns when the kernel has the data, which for a large letter is when the peer reads it.
/// A letter with another tag than the one recv() waits for is kept in memory until it is asked for.
/// Errors: kMismatch (count or dtype differ from what the sender gave; more than kMaxEarlyBytes of
/// letters that nobody asked for), kTimeout, kPeerLost, kCorrupt; all name the peer.
class Pipes {
 public:
  /// Arguments as for Links.
  Pipes(std::vector<UniqueFd> sockets, std::function<std::string(int)> name, int world_rank);
  ~Pipes();
  Pipes(const Pipes&) = delete;
  Pipes& operator=(const Pipes&) = delete;

  void send(int peer, int tag, const void* data, int64_t count, DType dtype, Deadline deadline);
  void recv(int peer, int tag, void* data, int64_t count, DType dtype, Deadline deadline);

  /// Wakes all peers that wait for this rank, and all threads that wait here. Any thread.
  void shut_down() noexcept;

 private:
  struct Early {
    Letter letter;
    std::unique_ptr<std::byte[]> data;
  };
  struct Pipe {
    UniqueFd fd;
    std::deque<Early> early;  // used by the receiving thread only
    int64_t early_bytes = 0;
  };

  void receive_letter(int peer, int tag, void* data, const Letter& expected, Deadline deadline);
  bool take_early(Pipe& pipe, const std::string& peer, void* data, const Letter& expected);
  void keep(Pipe& pipe, const std::string& peer, const Letter& letter, Deadline deadline);

  void strike(Phase phase) const { lockstep::strike(world_rank_, OpKind::kNone, phase); }

  std::function<std::string(int)> name_;
  int world_rank_;
  std::vector<Pipe> pipes_;  // by rank
};

}  // namespace lockstep::tcp
