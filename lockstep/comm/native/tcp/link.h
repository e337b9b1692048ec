#pragma once
// One of the connections of Links, shared by its sources only.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "lockstep/base/in_child.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/comm/native/tcp/frame.h"
#include "lockstep/comm/native/tcp/links.h"

namespace lockstep::tcp {

/// Bytes of a payload that are read with its header, so that a small message costs one system call.
/// Nothing of the next message is read. Emptying a socket that held two makes the kernel send an
/// acknowledgement, which else goes with the next data.
inline constexpr int64_t kReadAheadBytes = 4096;
/// For more than this at once, epoll is used instead of a read from each peer.
inline constexpr int64_t kFewBytes = 32 << 10;

/// A connection, or one for each direction. `readable` and `writable` are the last state from epoll
/// (edge-triggered) until a call finds the socket drained or full. `ended`: the end of the stream
/// follows the unread data; no further event will come.
struct Links::Link {
  /// The subject of an event.
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
  // With one connection for each direction: the one on which the peer sends; null until it has
  // come.
  bool one_way = false;
  bool peer_left = false;  // it ended this rank's own connection
  UniqueFd from_peer;
  std::optional<NotInChild> from_peer_not_in_child;
  bool readable = true;
  bool writable = true;
  bool ended = false;

  std::deque<const Outbound*> out;
  std::array<std::byte, kFrameBytes> out_header{};
  Progress sent;
  bool made = false;  // the front's data

  std::deque<const Inbound*> in;
  bool in_payload = false;  // the front's header has come and matched
  int64_t received = 0;     // of the front's payload
  std::array<std::byte, kFrameBytes + kReadAheadBytes> ahead{};
  size_t ahead_begin = 0;
  size_t ahead_end = 0;

  bool out_ended() const { return one_way ? peer_left : ended; }
  bool can_read() const { return !one_way || from_peer; }
  int in_fd() const { return one_way ? from_peer.get() : fd.get(); }
  size_t ahead_size() const { return ahead_end - ahead_begin; }
  /// Room for reading ahead of the front's message.
  size_t room_ahead() const {
    const int64_t payload = in.empty() ? 0 : in.front()->frame.bytes;
    return kFrameBytes + static_cast<size_t>(std::min(payload, kReadAheadBytes)) - ahead_size();
  }
  bool idle() const { return out.empty() && in.empty(); }
  bool awaited() const { return !in.empty() && in.front()->gate.open(); }
  bool brings_much() const { return awaited() && in.front()->frame.bytes > kFewBytes; }
  bool full() const { return !writable && !out.empty() && out.front()->gate.open(); }
};

}  // namespace lockstep::tcp
