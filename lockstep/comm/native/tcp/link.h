#pragma once
// One of the connections of Links: what its sources share, and nothing else includes.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "lockstep/base/in_child.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/comm/native/tcp/links.h"
#include "lockstep/comm/native/tcp/message.h"

namespace lockstep::tcp {

/// What is read of a payload with its header, so that a small message costs one system call.
/// Nothing of the next message: who empties a socket of two makes the kernel send an
/// acknowledgement, which else goes with what is sent next.
inline constexpr int64_t kReadAheadBytes = 4096;
/// More than this at once is asked of epoll, not of each peer.
inline constexpr int64_t kFewBytes = 32 << 10;

/// A connection, or one for each direction. `readable` and `writable` are what epoll said last
/// (edge-triggered) until a call finds the socket drained or full. `ended`: the end of the stream
/// is behind what is still to be read; no further event will tell.
struct Links::Link {
  /// What an event is of.
  enum Of : size_t { kBoth, kOut, kIn, kArrival, kNumSources };
  struct Source {
    Link* link;
    Of of;
  };

  struct Progress {
    int64_t header = 0;
    int64_t payload = 0;
  };

  explicit Link(int to) : peer(to) {
    for (size_t of = 0; of < kNumSources; ++of) sources[of] = {this, static_cast<Of>(of)};
  }

  const int peer;
  std::array<Source, kNumSources> sources{};
  UniqueFd fd;
  std::optional<NotInChild> not_in_child;
  // Where there is one for each direction, that on which the peer sends; null until it has come.
  bool one_way = false;
  bool peer_left = false;  // ended this rank's own
  UniqueFd from_peer;
  std::optional<NotInChild> from_peer_not_in_child;
  bool readable = true;
  bool writable = true;
  bool ended = false;

  std::deque<const Outbound*> out;
  std::array<std::byte, kMessageBytes> out_header{};
  Progress sent;
  bool made = false;  // the front's data

  std::deque<const Inbound*> in;
  bool in_payload = false;  // the front's header has come and matched
  int64_t received = 0;     // of the front's payload
  std::array<std::byte, kMessageBytes + kReadAheadBytes> ahead{};
  size_t ahead_begin = 0;
  size_t ahead_end = 0;

  bool out_ended() const { return one_way ? peer_left : ended; }
  bool can_read() const { return !one_way || from_peer; }
  int in_fd() const { return one_way ? from_peer.get() : fd.get(); }
  size_t ahead_size() const { return ahead_end - ahead_begin; }
  /// What is still to be read ahead of the front's message.
  size_t room_ahead() const {
    const int64_t payload = in.empty() ? 0 : in.front()->message.bytes;
    return kMessageBytes + static_cast<size_t>(std::min(payload, kReadAheadBytes)) - ahead_size();
  }
  bool idle() const { return out.empty() && in.empty(); }
  bool awaited() const { return !in.empty() && in.front()->gate.open(); }
  bool brings_much() const { return awaited() && in.front()->message.bytes > kFewBytes; }
  bool full() const { return !writable && !out.empty() && out.front()->gate.open(); }
};

}  // namespace lockstep::tcp
