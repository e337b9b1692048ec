#include "lockstep/comm/native/tcp/pipes.h"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include <cstring>
#include <utility>

#include "lockstep/base/socket.h"
#include "lockstep/error.h"

namespace lockstep::tcp {
namespace {

/// Up to this size, message and data go in one packet; copying is cheaper than a second system
/// call.
constexpr int64_t kOnePacketBytes = 8192;

MessageFrame frame_of(const MessageHeader& header) {
  return {MessageFrame::kMagic, header.tag, header.count, header.dtype, {}};
}

/// Frame and data in one buffer, for both directions; only the used bytes are sent.
using Packet = std::array<std::byte, kMessageFrameBytes + kOnePacketBytes>;
size_t pack(const MessageHeader& header, const void* data, Packet& packet) {
  const MessageFrame frame = frame_of(header);
  const auto bytes = static_cast<size_t>(header.bytes());
  std::memcpy(packet.data(), &frame, kMessageFrameBytes);
  if (bytes > 0) std::memcpy(packet.data() + kMessageFrameBytes, data, bytes);
  return kMessageFrameBytes + bytes;
}

/// Runs `body`; adds the call to its errors.
template <class Body>
bool in_call(const char* call, const std::string& message, const std::string& peer, Body body) {
  try {
    return body();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kMismatch) throw;  // is complete
    throw Error(error.code(), fmt::format("{} of {} ({}): {}", call, message, peer, error.what()));
  }
}

}  // namespace

Pipes::Pipes(const Peers& peers, int size, std::function<std::string(int)> name, int world_rank)
    : peers_(peers),
      name_(std::move(name)),
      world_rank_(world_rank),
      pipes_(static_cast<size_t>(size)) {}

Pipes::~Pipes() = default;

/// False: the deadline passed.
bool Pipes::open_out(int peer, Deadline deadline) {
  Pipe& pipe = pipes_[static_cast<size_t>(peer)];
  const MutexLock lock(pipe.opening);  // a sender's and a receiver's thread may both want it
  if (pipe.out >= 0) return true;
  const auto look = [this] {
    if (is_shut_down_) throw Error(ErrorCode::kPeerLost, "this rank gave the group up");
  };
  try {
    pipe.out_owner = peers_.connect(peer, deadline, look);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kTimeout) return false;
    throw;
  }
  pipe.out_not_in_child.emplace(pipe.out_owner.get());
  pipe.out = pipe.out_owner.get();
  if (is_shut_down_) ::shutdown(pipe.out, SHUT_RDWR);
  return true;
}

/// Takes the connection that the peer made. False: it has not arrived.
bool Pipes::claim_in(int peer) {
  Pipe& pipe = pipes_[static_cast<size_t>(peer)];
  UniqueFd fd = peers_.take(peer);
  if (!fd) return false;
  const MutexLock lock(pipe.opening);
  pipe.in_owner = std::move(fd);
  pipe.in_not_in_child.emplace(pipe.in_owner.get());
  pipe.in = pipe.in_owner.get();
  if (is_shut_down_) ::shutdown(pipe.in, SHUT_RDWR);
  return true;
}

/// Waits for the peer's first message. False: the deadline passed.
bool Pipes::await_in(int peer, Deadline deadline) {
  if (claim_in(peer)) return true;
  if (!open_out(peer, deadline)) return false;
  const int arrived = peers_.expect(peer);
  const int out = pipes_[static_cast<size_t>(peer)].out;
  while (true) {
    // Only the end of this connection can arrive on it.
    pollfd items[] = {{arrived, POLLIN, 0}, {out, POLLRDHUP, 0}};
    const int ready = ::poll(items, 2, deadline.left_poll_ms());
    if (claim_in(peer)) return true;  // also from a peer that has left since
    if (ready > 0 && items[1].revents != 0) {
      throw Error(ErrorCode::kPeerLost, name_(peer) + " closed the connection");
    }
    if (deadline.passed()) return false;
  }
}

bool Pipes::try_send(int peer, const MessageHeader& message, const void* data) noexcept {
  Pipe& pipe = pipes_[static_cast<size_t>(peer)];
  const int fd = pipe.out;
  if (fd < 0) return false;
  // A writable socket has room for more than a packet.
  pollfd ready{fd, POLLOUT, 0};
  if (message.bytes() > kOnePacketBytes || ::poll(&ready, 1, 0) != 1 || ready.revents != POLLOUT)
    return false;
  reach(FaultPoint::kExchanging);
  Packet packet;
  const size_t size = pack(message, data, packet);
  const ssize_t put = ::send(fd, packet.data(), size, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (put == static_cast<ssize_t>(size)) {
    reach(FaultPoint::kExchanged);
    return true;
  }
  pipe.begun = put > 0 ? static_cast<size_t>(put) : 0;
  return false;
}

bool Pipes::send(int peer, const MessageHeader& message, const void* data, Deadline deadline) {
  Pipe& pipe = pipes_[static_cast<size_t>(peer)];
  const size_t begun = std::exchange(pipe.begun, 0);
  const std::string name = name_(peer);
  return in_call("send", describe(message), name, [&] {
    reach(FaultPoint::kExchanging);
    if (!open_out(peer, deadline)) return false;
    const int fd = pipe.out;
    if (begun == 0 && !await_ready(fd, POLLOUT, deadline)) return false;
    if (message.bytes() <= kOnePacketBytes) {
      Packet packet;
      const size_t size = pack(message, data, packet);
      send_all(fd, packet.data() + begun, size - begun, deadline, name);
    } else {
      const MessageFrame head = frame_of(message);
      send_all(fd, &head, kMessageFrameBytes, deadline, name);
      reach(FaultPoint::kSending);
      send_all(fd, data, static_cast<size_t>(message.bytes()), deadline, name);
    }
    reach(FaultPoint::kExchanged);
    return true;
  });
}

bool Pipes::receive(int peer, MessageSink& sink, Deadline deadline,
                    std::chrono::microseconds spin) {
  Pipe& pipe = pipes_[static_cast<size_t>(peer)];
  const std::string name = name_(peer);
  return in_call("recv", sink.wanted(), name, [&] {
    sink.look();
    reach(FaultPoint::kExchanging);
    if (pipe.in < 0 && !await_in(peer, deadline)) return false;
    if (!read_head(pipe, name, deadline, spin)) return false;
    const MessageFrame got = parse_message_frame(pipe.head);
    pipe.head_bytes = 0;
    const auto destination = sink.begin({got.count, got.tag, got.dtype, {}});
    reach(FaultPoint::kReceiving);
    recv_all(pipe.in, destination.data, static_cast<size_t>(got.bytes()), destination.deadline,
             name);
    sink.end();
    reach(FaultPoint::kExchanged);
    return true;
  });
}

/// If it times out in the middle, the next call continues.
bool Pipes::read_head(Pipe& pipe, const std::string& peer, Deadline deadline,
                      std::chrono::microseconds spin) {
  const auto spin_end = Deadline::after(spin);
  while (pipe.head_bytes < kMessageFrameBytes) {
    pollfd ready{pipe.in, POLLIN, 0};
    const bool there =
        spin_end.passed() ? await_ready(pipe.in, POLLIN, deadline) : ::poll(&ready, 1, 0) == 1;
    if (there) {
      pipe.head_bytes += recv_some(pipe.in, pipe.head.data() + pipe.head_bytes,
                                   kMessageFrameBytes - pipe.head_bytes, deadline, peer);
    } else if (deadline.passed()) {
      return false;
    } else {
      // The peer may be on this machine and need this core: if hosts share one, as in tests.
      sched_yield();
    }
  }
  return true;
}

/// A connection opened meanwhile is shut down by the thread that opens it.
void Pipes::shut_down() noexcept {
  is_shut_down_ = true;
  for (auto& pipe : pipes_) {
    if (pipe.out >= 0) ::shutdown(pipe.out, SHUT_RDWR);
    if (pipe.in >= 0) ::shutdown(pipe.in, SHUT_RDWR);
  }
}

}  // namespace lockstep::tcp
