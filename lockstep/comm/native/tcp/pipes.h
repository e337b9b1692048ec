#pragma once
// Point to point between ranks of different hosts.

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/in_child.h"
#include "lockstep/base/mutex.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/comm/fault_point.h"
#include "lockstep/comm/message_matcher.h"
#include "lockstep/comm/native/tcp/frame.h"
#include "lockstep/comm/native/tcp/peers.h"
#include "lockstep/deadline.h"

namespace lockstep::tcp {

/// Connections apart from those of the collectives: sends and receives of other threads need no
/// agreement with a collective in progress. The first message to a peer makes one, and so does the
/// first wait for a message from a peer (see Peers). One thread per peer and direction.
///
/// Errors: kTimeout (in the middle of a message), kPeerLost, kCorrupt; all name the peer.
class Pipes {
 public:
  /// Between `size` ranks. `name`, `world_rank`: as for Links.
  Pipes(const Peers& peers, int size, std::function<std::string(int)> name, int world_rank);
  ~Pipes();
  Pipes(const Pipes&) = delete;
  Pipes& operator=(const Pipes&) = delete;

  /// True if the kernel has the message; else call send() with it next.
  bool try_send(int peer, const MessageHeader& message, const void* data) noexcept;
  /// Returns when the kernel has the data; for a large message that is when the peer reads it.
  /// False: the kernel has none of it by the deadline.
  bool send(int peer, const MessageHeader& message, const void* data, Deadline deadline);
  /// See GroupImpl::receive(). Checks repeatedly for `spin` before it sleeps.
  bool receive(int peer, MessageSink& sink, Deadline deadline, std::chrono::microseconds spin);

  /// Wakes all peers that wait for this rank, and all threads that wait here. Any thread.
  void shut_down() noexcept;

 private:
  struct Pipe {
    // Each is set once, and does not change again. The mutex is for setting them.
    std::atomic<int> out{-1};
    std::atomic<int> in{-1};
    Mutex opening;
    UniqueFd out_owner;
    UniqueFd in_owner;
    std::optional<NotInChild> out_not_in_child;
    std::optional<NotInChild> in_not_in_child;
    /// Bytes that the kernel took of the message in the last try_send(), if not all; send() comes
    /// next, with the same message.
    size_t begun = 0;
    // The head of an incoming message; used by the receiving thread only.
    std::array<std::byte, kMessageFrameBytes> head;
    size_t head_bytes = 0;
  };

  bool open_out(int peer, Deadline deadline);
  bool claim_in(int peer);
  bool await_in(int peer, Deadline deadline);
  bool read_head(Pipe& pipe, const std::string& peer, Deadline deadline,
                 std::chrono::microseconds spin);
  void reach(FaultPoint point) const { lockstep::reach(world_rank_, OpKind::kNone, point); }

  const Peers& peers_;
  std::function<std::string(int)> name_;
  int world_rank_;
  std::vector<Pipe> pipes_;  // by rank
  std::atomic<bool> is_shut_down_ = false;
};

}  // namespace lockstep::tcp
