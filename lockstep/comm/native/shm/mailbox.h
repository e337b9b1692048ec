#pragma once
// Point-to-point letters: a ring of bytes in each direction between two ranks.
//
// A small letter lies in the ring until the receiver reads it. Of a larger one only the envelope
// does: the receiver copies the bytes out of the sender's memory, once. Where that is memory of the
// group's allocate(), the receiver has it mapped; else the kernel copies, in two threads when they
// are many. Where the kernel forbids that, or pids differ, they pass through the ring. Only the
// receiver copies: one that gives up in the middle leaves nobody who writes to its memory.

#include <atomic>
#include <vector>

#include "lockstep/comm/letters.h"
#include "lockstep/comm/native/shm/meeting.h"
#include "lockstep/comm/native/shm/memory.h"

namespace lockstep::shm {

/// For tests: how the large letters travelled that this process received.
struct Travelled {
  std::atomic<int> mapped;   ///< Out of memory of allocate().
  std::atomic<int> read;     ///< By the kernel, out of the sender's.
  std::atomic<int> refused;  ///< Offered in vain, and so through the ring.
};
inline Travelled travelled;

/// One thread at a time a peer and direction, any peers at once.
class Mailbox {
 public:
  /// `memory`: the group's; outlives this.
  Mailbox(const GroupSpec& spec, Control control, Meeting& meeting, SharedMemoryList& memory);

  /// True when the letter is in the ring.
  bool try_send(const void* data, const Envelope& letter, int destination);
  /// Returns when the letter is in the ring, or has been taken. False: the time is over and nobody
  /// has begun to take it. Errors: kPeerLost, kTimeout (the peer stopped in the middle of it).
  bool send(const void* data, const Envelope& letter, int destination, const Waiting& waiting);
  /// See GroupImpl::receive(). Errors: the sink's, and as for send().
  bool receive(int source, LetterSink& sink, const Waiting& waiting);

 private:
  /// What lies in the ring before each letter.
  struct Head {
    Envelope envelope;
    uint64_t offer;  ///< Number of the offer; 0: the bytes follow.
  };
  /// Ends of one letter.
  struct Transfer {
    Channel& channel;
    int peer;
    const char* call;  ///< "send to".
    const Waiting& waiting;
  };

  static bool fits(const Channel& channel, int64_t bytes);
  static void put(Channel& channel, const Envelope& letter, uint64_t offer, const void* data,
                  int64_t bytes);
  bool send_offer(const Transfer& transfer, const void* data, const Envelope& letter,
                  const Place& place);
  bool take_offer(const Transfer& transfer, const Head& head, LetterSink& sink);
  bool copy_offered(const Transfer& transfer, std::byte* to, int64_t bytes);
  void write(const Transfer& transfer, const void* data, int64_t bytes);
  void read(const Transfer& transfer, void* data, int64_t bytes);
  template <class Ready>
  bool await(const Transfer& transfer, const Ready& ready);
  /// The same, in the middle of a letter: out of time is an error.
  template <class Ready>
  void require(const Transfer& transfer, const Ready& ready);

  const GroupSpec& spec_;
  const Control control_;
  Meeting& meeting_;
  SharedMemoryList& memory_;
  const uint64_t pid_space_;
  struct Sent {
    uint64_t offers = 0;
    bool refused = false;
  };
  std::vector<Sent> sent_;  // by destination; each touched by that one's thread
};

}  // namespace lockstep::shm
