// The connections of Links: their creation and end.

#include "lockstep/comm/native/tcp/links.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "lockstep/comm/native/tcp/link.h"
#include "lockstep/error.h"

namespace lockstep::tcp {

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

/// A connection on which this rank sends; the peer's is added when it arrives.
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
    if (error.code() == ErrorCode::kMismatch) throw;  // is complete
    throw Error(error.code(),
                fmt::format("{} on {}: {}", describe(now), name_(rank_), error.what()));
  }
  for (const int peer : missing) add(peer, std::move(sockets[static_cast<size_t>(peer)]));
}

/// Takes the connection that the peer made, if it has arrived.
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

}  // namespace lockstep::tcp
