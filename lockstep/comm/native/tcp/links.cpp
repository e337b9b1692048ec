#include "lockstep/comm/native/tcp/links.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/base/in_child.h"
#include "lockstep/comm/native/phase.h"

namespace lockstep::tcp {
namespace {

/// Bytes moved on one link before the others get their turn: large enough that system calls do
/// not matter, small enough that both directions of all links stay busy.
constexpr int64_t kTurnBytes = 256 << 10;
/// How often who waits asks for an alarm.
constexpr auto kAlarmed = std::chrono::milliseconds(100);
/// What is read of a payload with its header, so that a small message costs one system call.
/// Nothing of the next message: who empties a socket of two makes the kernel send an
/// acknowledgement, which else goes with what is sent next.
constexpr int64_t kReadAheadBytes = 4096;
/// Up to so many peers that send no more than this are each asked for it, which spares asking which
/// of them did.
constexpr size_t kFewLinks = 4;
constexpr int64_t kFewBytes = 32 << 10;

}  // namespace

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

Links::Links(int rank, std::vector<UniqueFd> sockets, std::function<std::string(int)> name,
             int world_rank, std::function<bool()> alarm, const Peers* peers)
    : rank_(rank),
      world_rank_(world_rank),
      name_(std::move(name)),
      alarm_(std::move(alarm)),
      peers_(peers) {
  links_.resize(sockets.size());
  for (size_t peer = 0; peer < sockets.size(); ++peer) {
    if (sockets[peer]) add(static_cast<int>(peer), std::move(sockets[peer]));
  }
}

Links::~Links() = default;

/// One for both directions.
void Links::add(int peer, UniqueFd socket) {
  auto link = std::make_unique<Link>(peer);
  link->fd = std::move(socket);
  link->not_in_child.emplace(link->fd.get());
  watch(link->fd.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP, *link, Link::kBoth);
  const MutexLock lock(changing_);
  auto& place = links_[static_cast<size_t>(peer)];
  place = std::move(link);
  if (is_shut_down_) ::shutdown(place->fd.get(), SHUT_RDWR);
}

void Links::watch(int fd, uint32_t events, Link& link, size_t source) {
  if (!epoll_) {
    epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll_) throw io_error("epoll_create1");
  }
  epoll_event event{};
  event.events = events | EPOLLET;
  event.data.ptr = &link.sources.at(source);
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) throw io_error("epoll_ctl");
}

Links::Link& Links::link_to(int peer, const OpHeader& now, Deadline deadline) {
  auto& place = links_[static_cast<size_t>(peer)];
  if (place) return *place;
  auto made = open(peer, now, deadline);
  const MutexLock lock(changing_);
  place = std::move(made);
  if (is_shut_down_) ::shutdown(place->fd.get(), SHUT_RDWR);
  return *place;
}

/// One on which this rank sends; that of the peer comes when it comes.
std::unique_ptr<Links::Link> Links::open(int peer, const OpHeader& now, Deadline deadline) {
  if (peers_ == nullptr) throw Error(ErrorCode::kInternal, "no connection to " + name_(peer));
  awaited_ = {peer};
  const std::string how = name_(peer) + " did not come in time";
  const auto look = [&] {
    check_shut_down();
    if (alarm_ && alarm_()) throw did_not_come(now, how);
    check_unasked(now);
  };
  auto link = std::make_unique<Link>(peer);
  try {
    link->fd = peers_->connect(peer, deadline, look);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kTimeout) throw did_not_come(now, how);
    throw;
  }
  link->one_way = true;
  link->readable = false;
  link->not_in_child.emplace(link->fd.get());
  watch(link->fd.get(), EPOLLOUT | EPOLLRDHUP, *link, Link::kOut);
  claim(*link);
  if (!link->can_read()) watch(peers_->expect(peer), EPOLLIN, *link, Link::kArrival);
  return link;
}

void Links::check_shut_down() {
  const MutexLock lock(changing_);
  if (is_shut_down_) throw Error(ErrorCode::kPeerLost, "this rank gave the group up");
}

Error Links::did_not_come(const OpHeader& now, const std::string& how) const {
  return Error(ErrorCode::kTimeout, fmt::format("{} on {}: {}", describe(now), name_(rank_), how));
}

void Links::meet(std::span<const int> fellows, const OpHeader& now, Deadline deadline) {
  std::vector<int> missing;
  for (const int peer : fellows) {
    if (!links_[static_cast<size_t>(peer)]) missing.push_back(peer);
  }
  if (missing.empty()) return;
  if (peers_ == nullptr) throw Error(ErrorCode::kInternal, "no connection to " + name_(missing[0]));
  const auto look = [&](const std::vector<int>& awaited) {
    awaited_ = awaited;
    check_shut_down();
    check_unasked(now);
    return !alarm_ || !alarm_();
  };
  std::vector<UniqueFd> sockets;
  try {
    sockets = peers_->meet(missing, deadline, look);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kTimeout) throw did_not_come(now, error.what());
    if (error.code() == ErrorCode::kMismatch) throw;  // says all
    throw Error(error.code(),
                fmt::format("{} on {}: {}", describe(now), name_(rank_), error.what()));
  }
  for (const int peer : missing) add(peer, std::move(sockets[static_cast<size_t>(peer)]));
}

/// Takes the connection that the peer made, if it has come.
void Links::claim(Link& link) {
  if (link.can_read()) return;
  UniqueFd fd = peers_->take(link.peer);
  if (!fd) return;
  const MutexLock lock(changing_);
  link.from_peer = std::move(fd);
  link.from_peer_not_in_child.emplace(link.from_peer.get());
  link.readable = true;
  watch(link.from_peer.get(), EPOLLIN | EPOLLRDHUP, link, Link::kIn);
}

void Links::shut_down() noexcept {
  const MutexLock lock(changing_);
  is_shut_down_ = true;
  for (const auto& link : links_) {
    if (!link) continue;
    ::shutdown(link->fd.get(), SHUT_RDWR);
    if (link->from_peer) ::shutdown(link->from_peer.get(), SHUT_RDWR);
  }
}

void Links::exchange(std::span<const Outbound> out, std::span<const Inbound> in, Deadline deadline,
                     std::chrono::microseconds spin) {
  if (out.empty() && in.empty()) return;
  const OpKind kind = (out.empty() ? in.front().message : out.front().message).operation.kind;
  strike(world_rank_, kind, Phase::kExchanging);
  pump(out, in, deadline, spin);
  strike(world_rank_, kind, Phase::kExchanged);
}

void Links::pump(std::span<const Outbound> out, std::span<const Inbound> in, Deadline deadline,
                 std::chrono::microseconds spin) {
  const OpHeader now = (out.empty() ? in.front().message : out.front().message).operation;
  std::vector<Link*> busy;
  const auto use = [&](int peer) {
    Link* const link = &link_to(peer, now, deadline);
    if (std::find(busy.begin(), busy.end(), link) == busy.end()) busy.push_back(link);
  };
  for (const auto& item : out) use(item.peer);
  for (const auto& item : in) use(item.peer);
  for (const auto& item : out) links_[static_cast<size_t>(item.peer)]->out.push_back(&item);
  for (const auto& item : in) links_[static_cast<size_t>(item.peer)]->in.push_back(&item);
  std::optional<Deadline::Clock::time_point> spin_end;  // since something moved last
  while (!busy.empty()) {
    bool moved = false;
    for (Link* link : busy) {
      moved |= pump_out(*link);
      moved |= pump_in(*link);
    }
    std::erase_if(busy, [](const Link* link) { return link->idle(); });
    if (moved) spin_end.reset();
    if (moved || busy.empty()) continue;
    if (!spin_end) spin_end = Deadline::Clock::now() + spin;
    if (look(busy, *spin_end, deadline)) {
      spin_end.reset();
    } else {
      sleep(now, deadline);
    }
  }
}

/// Sends what can go now, at most a turn's worth. True when something moved.
bool Links::pump_out(Link& link) {
  if (!link.writable || link.out.empty()) return false;
  const Outbound& item = *link.out.front();
  if (!item.gate.open()) return false;
  const bool begins = link.sent.header == 0;
  if (begins && item.make && !link.made) {
    item.make();
    link.made = true;
  }
  const int64_t payload = std::min(item.message.bytes - link.sent.payload, kTurnBytes);
  if (begins) std::memcpy(link.out_header.data(), &item.message, kMessageBytes);
  const auto* data = static_cast<const std::byte*>(item.data) + link.sent.payload;
  iovec parts[2] = {{link.out_header.data() + link.sent.header,
                     kMessageBytes - static_cast<size_t>(link.sent.header)},
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
  if (link.sent.header == kMessageBytes && link.sent.payload == item.message.bytes) {
    link.out.pop_front();
    link.sent = {};
    link.made = false;
  }
  if (put > 0 && !link.out.empty())
    strike(world_rank_, link.out.front()->message.operation.kind, Phase::kSending);
  return put > 0;
}

/// Receives what is there, at most a turn's worth. True when something moved.
bool Links::pump_in(Link& link) {
  if (link.in.empty() || !link.in.front()->gate.open()) return false;
  if (!link.can_read() && link.peer_left) {
    claim(link);  // it may have come, sent all of it and left
    if (!link.can_read()) throw_lost(link, "closed the connection");
  }
  if (!link.can_read()) return false;
  if (!link.in_payload && !read_message(link)) return false;
  const Inbound& item = *link.in.front();
  if (link.received < item.message.bytes) {
    const bool moved = read_payload(link);
    if (moved) strike(world_rank_, item.message.operation.kind, Phase::kReceiving);
    return moved;
  }
  if (item.message.bytes == 0 && item.arrived) item.arrived(0);
  link.in.pop_front();
  link.in_payload = false;
  link.received = 0;
  return true;
}

/// Reads until a whole message's header is there. True when it is.
bool Links::read_ahead(Link& link) {
  while (link.ahead_size() < kMessageBytes) {
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

/// Reads the front's header and checks it. True when it is there.
bool Links::read_message(Link& link) {
  if (!read_ahead(link)) return false;
  const Message& expected = link.in.front()->message;
  const Message got = parse(link, expected.operation);
  const std::string why = mismatch(expected, name_(rank_), got, name_(link.peer));
  if (!why.empty()) throw Error(ErrorCode::kMismatch, why);
  link.ahead_begin += kMessageBytes;
  link.in_payload = true;
  return true;
}

/// The header that has come.
Message Links::parse(const Link& link, const OpHeader& now) const {
  try {
    return parse_message(std::span<const std::byte, kMessageBytes>(
        link.ahead.data() + link.ahead_begin, kMessageBytes));
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{} on {}: {}: {}", describe(now), name_(rank_),
                                          name_(link.peer), error.what()));
  }
}

/// Where ranks send only to some, one that called something else may be waited for in vain while
/// what it sent lies here. Messages of calls to come are in order.
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
  while (moved < kTurnBytes && link.received < item.message.bytes) {
    auto* to = static_cast<std::byte*>(item.data) + link.received;
    const auto wanted =
        static_cast<size_t>(std::min(item.message.bytes - link.received, kTurnBytes));
    size_t got = std::min(wanted, link.ahead_size());
    if (got > 0) {
      std::memcpy(to, link.ahead.data() + link.ahead_begin, got);
      link.ahead_begin += got;
    } else {
      if (!link.readable) break;
      const ssize_t taken = ::recv(link.in_fd(), to, wanted, MSG_DONTWAIT);
      if (taken == 0) {
        throw_lost(link, fmt::format("closed the connection after {} of {} bytes", link.received,
                                     item.message.bytes));
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

/// Looks again and again until `end`. True when there is something to do.
bool Links::look(std::span<Link* const> busy, Deadline::Clock::time_point end, Deadline deadline) {
  const auto needs_epoll = [](const Link* link) { return link->full() || link->brings_much(); };
  const bool ask_each =
      busy.size() <= kFewLinks && std::none_of(busy.begin(), busy.end(), needs_epoll);
  while (Deadline::Clock::now() < end) {
    if (deadline.passed()) throw_timeout();  // also where a peer sends byte by byte for ever
    // The peer may be on this machine and want this core: where hosts share one, as in tests.
    sched_yield();
    for (Link* link : ask_each ? busy : std::span<Link* const>{}) {
      if (!link->awaited() || !link->can_read()) continue;
      link->readable = true;
      if (pump_in(*link)) return true;
    }
    if (!ask_each && take_events(0) > 0) return true;
  }
  return false;
}

void Links::sleep(const OpHeader& now, Deadline deadline) {
  if (deadline.passed() || (alarm_ && alarm_())) throw_timeout();
  if (take_events(0) > 0) return;
  check_unasked(now);
  take_events(deadline.at_most(kAlarmed).left_poll_ms());
}

int Links::take_events(int milliseconds) {
  std::array<epoll_event, 64> events;
  const int count =
      ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), milliseconds);
  if (count < 0 && errno != EINTR) throw io_error("epoll_wait");
  for (int i = 0; i < count; ++i) {
    const auto* source = static_cast<Link::Source*>(events[static_cast<size_t>(i)].data.ptr);
    Link* const link = source->link;
    const uint32_t what = events[static_cast<size_t>(i)].events;
    // A dead connection is found by the call that meets it.
    const bool ended = (what & (EPOLLERR | EPOLLHUP | EPOLLRDHUP)) != 0;
    if (source->of == Link::kArrival) {
      claim(*link);
    } else if (source->of == Link::kOut) {
      link->peer_left |= ended;
    } else {
      link->ended |= ended;
      link->readable |= ended || (what & EPOLLIN) != 0;
    }
    link->writable |= source->of != Link::kIn && (ended || (what & EPOLLOUT) != 0);
  }
  return count;
}

std::string Links::names_of(const std::vector<int>& peers) const {
  std::string text;
  for (const int peer : peers) text += (text.empty() ? "" : ", ") + name_(peer);
  return text;
}

void Links::throw_timeout() {
  const auto link_of = [this](int peer) { return links_[static_cast<size_t>(peer)].get(); };
  awaited_ = furthest_back();
  const bool silent = !awaited_.empty();
  if (!silent) awaited_ = deaf();
  std::string call;
  if (!awaited_.empty()) {
    const Link* const first = link_of(awaited_.front());
    const Message& message = silent ? first->in.front()->message : first->out.front()->message;
    call = describe(message.operation);
  }
  throw Error(ErrorCode::kTimeout,
              fmt::format("{} on {}: {} did not {} in time", call, name_(rank_), names_of(awaited_),
                          silent ? "come" : "take the data"));
}

std::vector<int> Links::furthest_back() const {
  std::vector<int> peers;
  uint32_t least = 0;
  for (const auto& link : links_) {
    if (!link || !link->awaited()) continue;
    const uint32_t part = link->in.front()->message.part;
    if (peers.empty() || part < least) {
      peers.clear();
      least = part;
    }
    if (part == least) peers.push_back(link->peer);
  }
  return peers;
}

std::vector<int> Links::deaf() const {
  std::vector<int> peers;
  for (const auto& link : links_) {
    if (link && !link->out.empty() && link->out.front()->gate.open()) peers.push_back(link->peer);
  }
  return peers;
}

void Links::throw_lost(const Link& link, const std::string& how) const {
  const auto* item = !link.in.empty() ? &link.in.front()->message : &link.out.front()->message;
  throw Error(ErrorCode::kPeerLost,
              fmt::format("{} on {}: {}: {}. See that rank's log; it most "
                          "likely failed first",
                          describe(item->operation), name_(rank_), name_(link.peer), how));
}

}  // namespace lockstep::tcp
