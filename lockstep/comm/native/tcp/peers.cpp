#include "lockstep/comm/native/tcp/peers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "lockstep/base/auth.h"
#include "lockstep/base/error.h"
#include "lockstep/base/socket.h"
#include "lockstep/base/text.h"

namespace lockstep::tcp {
namespace {

constexpr auto kLookPause = 100ms;

void set_option(int fd, int level, int option, int value) {
  ::setsockopt(fd, level, option, &value, sizeof value);
}

void choose_congestion_control(int fd) {
  for (const char* name : {"cubic", "reno"}) {
    if (::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name,
                     static_cast<socklen_t>(std::strlen(name))) == 0) {
      return;
    }
  }
}

}  // namespace

bool await_readable(int fd, Deadline deadline, const Look& look) {
  while (true) {
    pollfd item{fd, POLLIN, 0};
    if (::poll(&item, 1, deadline.at_most(kLookPause).left_poll_ms()) > 0) return true;
    if (deadline.passed()) return false;
    if (look) look();
  }
}

void tune_socket(int fd) {
  constexpr auto kDay = std::chrono::milliseconds(24h);
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(kDay.count()));
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 15);  // s
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);  // s
  choose_congestion_control(fd);
}

Peers::Peers(Group group)
    : group_(std::move(group)), digest_(hmac_sha256(group_.secret, "group " + group_.name)) {}

Peers::~Peers() {
  group_.reception->end(digest_);
}

namespace {

/// A way to the host that is gone (no route, a reset) may come back before time is over.
UniqueFd connect_in_time(const Endpoint& endpoint, Deadline deadline, const Look& look) {
  while (true) {
    try {
      return tcp_connect_once(endpoint, deadline, look);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kTimeout || deadline.passed()) throw;
    }
    if (look) look();
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(kLookPause, deadline.left()));
  }
}

}  // namespace

UniqueFd Peers::connect(int peer, Deadline deadline, const Look& look) const {
  const auto endpoint = parse_endpoint(group_.endpoints[static_cast<size_t>(peer)], 0);
  const auto name = fmt::format("rank {} at {}", named(peer), to_string(endpoint));
  try {
    UniqueFd fd = connect_in_time(endpoint, deadline, look);
    // It speaks first: from then on it is not frozen, and what follows takes no time.
    if (!await_readable(fd.get(), deadline, look)) {
      throw Error(ErrorCode::kTimeout, name + " does not answer");
    }
    authenticate_client(fd.get(), group_.secret, kPurpose, deadline);
    const Greeting greeting{digest_, named(group_.rank), named(peer)};
    int32_t answer = -1;
    send_all(fd.get(), &greeting, sizeof greeting, deadline, name);
    recv_all(fd.get(), &answer, sizeof answer, deadline, name);
    if (answer != greeting.to) {
      throw Error(ErrorCode::kMismatch, name + " answered for another rank");
    }
    tune_socket(fd.get());
    return fd;
  } catch (const Error& error) {
    // A server that is ending closes what it has accepted.
    const bool ended = error.code() == ErrorCode::kUnavailable;
    throw Error(ended ? ErrorCode::kPeerLost : error.code(),
                fmt::format("rank {} connecting to rank {}: {}", named(group_.rank), named(peer),
                            error.what()));
  }
}

UniqueFd Peers::take(int peer) const {
  UniqueFd fd = group_.reception->take(digest_, named(peer));
  if (fd) tune_socket(fd.get());
  return fd;
}

int Peers::expect(int peer) const {
  return group_.reception->expect(digest_, named(peer));
}

void Peers::throw_left(int peer) const {
  throw Error(ErrorCode::kPeerLost,
              fmt::format("group '{}', rank {}: rank {} ended its process group", group_.name,
                          named(group_.rank), named(peer)));
}

std::vector<UniqueFd> Peers::meet(std::span<const int> peers, Deadline deadline,
                                  const std::function<void(const std::vector<int>&)>& look) const {
  std::vector<UniqueFd> sockets(group_.world_ranks.size());
  const auto socket_of = [&](int peer) -> UniqueFd& { return sockets[static_cast<size_t>(peer)]; };
  std::vector<int> awaited(peers.begin(), peers.end());
  const Look look_at = [&] {
    if (look) look(awaited);
  };
  for (const int peer : peers) {
    if (peer < group_.rank) socket_of(peer) = connect(peer, deadline, look_at);
  }
  // A lower rank has let this one in without a look at the group; when it makes it, it says so.
  constexpr char kHere = 'h';
  const auto has_come = [&](int peer) {
    UniqueFd& socket = socket_of(peer);
    if (peer > group_.rank) {
      socket = take(peer);
      if (!socket) return false;
      if (::send(socket.get(), &kHere, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1) return true;
      throw_left(peer);
    }
    char said = 0;
    const ssize_t got = ::recv(socket.get(), &said, 1, MSG_DONTWAIT);
    if (got == 1 && said == kHere) return true;
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    throw_left(peer);
  };
  while (true) {
    std::erase_if(awaited, has_come);
    if (awaited.empty()) return sockets;
    const int next = awaited.front();
    const int fd = next > group_.rank ? expect(next) : socket_of(next).get();
    if (await_readable(fd, deadline, look_at)) continue;
    for (int& rank : awaited) rank = named(rank);
    const char* const plural = awaited.size() == 1 ? "" : "s";
    const auto refusal = group_.reception->last_refusal();
    throw Error(ErrorCode::kTimeout,
                fmt::format("group '{}', rank {}: no connection with rank{} {}{}", group_.name,
                            named(group_.rank), plural, rank_list(std::move(awaited)),
                            refusal.empty() ? ": they did not come" : refusal));
  }
}

}  // namespace lockstep::tcp
