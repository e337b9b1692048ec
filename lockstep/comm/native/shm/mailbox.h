#pragma once
// Point-to-point messages: a ring of bytes in each direction between two ranks.
//
// A small message lies in the ring until the receiver reads it. For a larger one the ring holds
// only the header, and the message's place in its sender. If that is memory of the group's
// allocate(), the receiver has it mapped, and copies it once. Else both ends copy: see lane.h. Only
// the receiver writes to its own memory: after it gives up in the middle, no process writes there.

#include <atomic>
#include <vector>

#include "lockstep/comm/fault_point.h"
#include "lockstep/comm/message_matcher.h"
#include "lockstep/comm/native/shm/barrier.h"
#include "lockstep/comm/native/shm/memory.h"

namespace lockstep::shm {

/// For tests: the ways of the large messages that this process received.
struct Travelled {
  std::atomic<int> mapped;   ///< Messages in memory of allocate().
  std::atomic<int> taken;    ///< Chunks of other messages through the lane,
  std::atomic<int> read;     ///< and by the kernel, from the sender's memory.
  std::atomic<int> refused;  ///< Senders whose memory the kernel did not let this process read.
};
inline Travelled travelled;

/// One thread at a time per peer and direction, any peers at once.
class Mailbox {
 public:
  /// `memory`: the group's; outlives this.
  Mailbox(const GroupSpec& spec, Control control, Barrier& barrier, SharedMemoryList& memory);

  /// True if the message is in the ring.
  bool try_send(const void* data, const MessageHeader& message, int destination);
  /// Returns when the message is in the ring, or has been taken. False: timeout, and the receiver
  /// has not begun to take it. Errors: kPeerLost, kTimeout (the peer stopped in the middle of it).
  bool send(const void* data, const MessageHeader& message, int destination,
            const Waiting& waiting);
  /// See GroupImpl::receive(). Errors: the sink's, and as for send().
  bool receive(int source, MessageSink& sink, const Waiting& waiting);

 private:
  /// The ring's data before each message.
  struct Head {
    MessageHeader header;
    uint64_t offer;  ///< Number of the offer, whose Origin follows; 0: the bytes follow.
  };
  /// Where the message lies in its sender's memory.
  struct Origin {
    int64_t pid;
    uint64_t pid_space;  ///< As lockstep::pid_space() of the sender: the numbering of that pid.
    uint64_t address;
    SharedOffset shared;
  };
  /// The state of sending or receiving one message.
  struct Transfer {
    Channel& channel;
    int peer;
    const char* call;  ///< "send to".
    const Waiting& waiting;
  };

  static bool fits(const Channel& channel, int64_t bytes);
  static void put(Channel& channel, const MessageHeader& message, uint64_t offer, const void* data,
                  int64_t bytes);
  bool send_offer(const Transfer& transfer, const void* data, const MessageHeader& message,
                  const SharedOffset& shared);
  bool fill(Channel& channel, LaneSender& lane) const;
  void fill_lane(const Transfer& transfer, LaneSender& lane, uint64_t number);
  bool take_offer(const Transfer& transfer, const Head& head, MessageSink& sink);
  void copy_together(const Transfer& transfer, const Origin& origin, std::byte* to, int64_t bytes);
  WaitReason reason(const Transfer& transfer) const;
  void reach(FaultPoint point) const {
    lockstep::reach(spec_.world_ranks[static_cast<size_t>(spec_.rank)], OpKind::kNone, point);
  }
  void read(const Transfer& transfer, void* data, int64_t bytes);
  template <class Ready>
  bool await(const Transfer& transfer, const Ready& ready);
  /// The same, in the middle of a message: a timeout is an error.
  template <class Ready>
  void require(const Transfer& transfer, const Ready& ready);

  const GroupSpec& spec_;
  const Control control_;
  Barrier& barrier_;
  SharedMemoryList& memory_;
  const uint64_t pid_space_;
  // By peer, the next two; each touched by one thread at a time.
  std::vector<uint64_t> offers_;     // made so far
  std::vector<uint8_t> unreadable_;  // 1: the kernel has not let this rank read the peer's memory
};

}  // namespace lockstep::shm
