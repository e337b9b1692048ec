#pragma once
// Point-to-point messages: a ring of bytes in each direction between two ranks.

#include <deque>
#include <string>
#include <vector>

#include "lockstep/comm/native/shm/meeting.h"

namespace lockstep::shm {

/// send() and recv() block; one thread at a time a peer and direction, any peers at once.
class Mailbox {
 public:
  Mailbox(const GroupSpec& spec, Control control, Meeting& meeting);

  /// Returns when the message is in the ring: at once while there is room for it.
  void send(const void* data, int64_t count, DType dtype, int destination, int tag,
            const Waiting& waiting);
  /// Takes the first message with `tag`. Those with other tags that come before it are kept.
  void recv(void* data, int64_t count, DType dtype, int source, int tag, const Waiting& waiting);

 private:
  struct Envelope {
    int64_t count;
    int32_t tag;
    DType dtype;
    uint8_t unused[3];
    int64_t bytes() const { return count * size_of(dtype); }
  };
  struct Kept {
    Envelope envelope;
    std::vector<std::byte> data;
  };

  void write(int destination, const void* data, int64_t bytes, const Waiting& waiting);
  void read(int source, void* data, int64_t bytes, const Waiting& waiting);
  void check(const Envelope& came, int64_t count, DType dtype, int source);

  const GroupSpec& spec_;
  const Control control_;
  Meeting& meeting_;
  std::vector<std::deque<Kept>> kept_;  // by source; each touched by that source's recv thread
};

}  // namespace lockstep::shm
