// The data on one connection of Links: messages, one after another.

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "lockstep/comm/fault_point.h"
#include "lockstep/comm/native/tcp/link.h"
#include "lockstep/comm/native/tcp/links.h"
#include "lockstep/error.h"

namespace lockstep::tcp {
namespace {

/// Bytes moved on one link before the others get their turn. Large enough that system calls do not
/// matter, small enough that both directions of all links stay busy.
constexpr int64_t kTurnBytes = 256 << 10;

}  // namespace

/// Sends as much as possible, at most a turn's worth. True if something moved.
bool Links::pump_out(Link& link) {
  if (!link.writable || link.out.empty()) return false;
  const Outbound& item = *link.out.front();
  if (!item.gate.open()) return false;
  const bool begins = link.sent.header == 0;
  if (begins && item.make && !link.made) {
    item.make();
    link.made = true;
  }
  const int64_t payload = std::min(item.frame.bytes - link.sent.payload, kTurnBytes);
  if (begins) std::memcpy(link.out_header.data(), &item.frame, kFrameBytes);
  const auto* data = static_cast<const std::byte*>(item.data) + link.sent.payload;
  iovec parts[2] = {{link.out_header.data() + link.sent.header,
                     kFrameBytes - static_cast<size_t>(link.sent.header)},
                    {const_cast<std::byte*>(data), static_cast<size_t>(payload)}};
  msghdr call{};
  call.msg_iov = parts;
  call.msg_iovlen = 2;
  const ssize_t put = ::sendmsg(link.fd.get(), &call, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (put < 0) {
    if (errno == EINTR) return true;
    if (errno != EAGAIN) throw_lost(link, std::strerror(errno));
    link.writable = false;
    return false;
  }
  link.writable =
      link.out_ended() || put == static_cast<ssize_t>(parts[0].iov_len + parts[1].iov_len);
  const int64_t header = std::min<int64_t>(put, static_cast<int64_t>(parts[0].iov_len));
  link.sent.header += header;
  link.sent.payload += put - header;
  if (link.sent.header == kFrameBytes && link.sent.payload == item.frame.bytes) {
    link.out.pop_front();
    link.sent = {};
    link.made = false;
  }
  if (put > 0 && !link.out.empty())
    reach(world_rank_, link.out.front()->frame.operation.kind, FaultPoint::kSending);
  return put > 0;
}

/// Receives the available data, at most a turn's worth. True if something moved.
bool Links::pump_in(Link& link) {
  if (link.in.empty() || !link.in.front()->gate.open()) return false;
  if (!link.can_read() && link.peer_left) {
    claim(link);  // it may have come, sent everything and left
    if (!link.can_read()) throw_lost(link, "closed the connection");
  }
  if (!link.can_read()) return false;
  if (!link.in_payload && !read_frame(link)) return false;
  const Inbound& item = *link.in.front();
  if (link.received < item.frame.bytes) {
    const bool moved = read_payload(link);
    if (moved) reach(world_rank_, item.frame.operation.kind, FaultPoint::kReceiving);
    return moved;
  }
  if (item.frame.bytes == 0 && item.arrived) item.arrived(0);
  link.in.pop_front();
  link.in_payload = false;
  link.received = 0;
  return true;
}

/// Reads until a complete message header is there. True if it is.
bool Links::read_ahead(Link& link) {
  while (link.ahead_size() < kFrameBytes) {
    if (!link.readable) return false;
    if (link.ahead_begin > 0) {
      std::memmove(link.ahead.data(), link.ahead.data() + link.ahead_begin, link.ahead_size());
      link.ahead_end -= link.ahead_begin;
      link.ahead_begin = 0;
    }
    const size_t room = link.room_ahead();
    const ssize_t got =
        ::recv(link.in_fd(), link.ahead.data() + link.ahead_end, room, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (link.idle() && (got == 0 || (got < 0 && errno != EAGAIN))) return false;  // not needed now
    if (got == 0) throw_lost(link, "closed the connection");
    if (got < 0 && errno != EAGAIN) throw_lost(link, std::strerror(errno));
    link.readable = got == static_cast<ssize_t>(room) || (got > 0 && link.ended);
    if (got > 0) link.ahead_end += static_cast<size_t>(got);
  }
  return true;
}

/// Reads the front's header and checks it. True if it is there.
bool Links::read_frame(Link& link) {
  if (!read_ahead(link)) return false;
  const Frame& expected = link.in.front()->frame;
  const Frame got = parse(link, expected.operation);
  const std::string why = mismatch(expected, name_(rank_), got, name_(link.peer));
  if (!why.empty()) throw Error(ErrorCode::kMismatch, why);
  link.ahead_begin += kFrameBytes;
  link.in_payload = true;
  return true;
}

/// The received header.
Frame Links::parse(const Link& link, const OpHeader& now) const {
  try {
    return parse_frame(
        std::span<const std::byte, kFrameBytes>(link.ahead.data() + link.ahead_begin, kFrameBytes));
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{} on {}: {}: {}", describe(now), name_(rank_),
                                          name_(link.peer), error.what()));
  }
}

/// If ranks send only to some, another rank may wait in vain for one that made another call, while
/// that one's message is here. Messages of later calls are valid.
void Links::check_unasked(const OpHeader& now) {
  for (const auto& link : links_) {
    if (!link || !link->idle() || !link->can_read() || !read_ahead(*link)) continue;
    const OpHeader got = parse(*link, now).operation;
    if (got.sequence > now.sequence) continue;
    if (const auto why = lockstep::mismatch(now, name_(rank_), got, name_(link->peer)))
      throw Error(ErrorCode::kMismatch, *why);
  }
}

bool Links::read_payload(Link& link) {
  const Inbound& item = *link.in.front();
  int64_t moved = 0;
  while (moved < kTurnBytes && link.received < item.frame.bytes) {
    auto* to = static_cast<std::byte*>(item.data) + link.received;
    const auto wanted = static_cast<size_t>(std::min(item.frame.bytes - link.received, kTurnBytes));
    size_t got = std::min(wanted, link.ahead_size());
    if (got > 0) {
      std::memcpy(to, link.ahead.data() + link.ahead_begin, got);
      link.ahead_begin += got;
    } else {
      if (!link.readable) break;
      const ssize_t taken = ::recv(link.in_fd(), to, wanted, MSG_DONTWAIT);
      if (taken == 0) {
        throw_lost(link, fmt::format("closed the connection after {} of {} bytes", link.received,
                                     item.frame.bytes));
      }
      if (taken < 0 && errno == EINTR) continue;
      if (taken < 0 && errno != EAGAIN) throw_lost(link, std::strerror(errno));
      link.readable = taken == static_cast<ssize_t>(wanted) || (taken > 0 && link.ended);
      if (taken < 0) break;
      got = static_cast<size_t>(taken);
    }
    link.received += static_cast<int64_t>(got);
    moved += static_cast<int64_t>(got);
    if (item.arrived) item.arrived(link.received);
  }
  return moved > 0;
}

}  // namespace lockstep::tcp
