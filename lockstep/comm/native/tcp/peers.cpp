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
#include <list>
#include <optional>
#include <thread>
#include <utility>

#include "lockstep/base/auth.h"
#include "lockstep/base/in_child.h"
#include "lockstep/base/literals.h"
#include "lockstep/base/socket.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/look_pause.h"
#include "lockstep/error.h"

namespace lockstep::tcp {
namespace {

/// A name that is unknown for longer is a wrong one (LOCKSTEP_ADDRESS, --local_addr).
constexpr auto kDnsLimit = 30s;

void choose_congestion_control(int fd) {
  for (const char* name : {"cubic", "reno"}) {
    if (::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name,
                     static_cast<socklen_t>(std::strlen(name))) == 0) {
      return;
    }
  }
}

}  // namespace

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

namespace {
Digest digest_of(const std::string& secret, const std::string& name) {
  return hmac_sha256(secret, "group " + name);
}
}  // namespace

Peers::Peers(Group group)
    : group_(std::move(group)), digest_(digest_of(group_.secret, group_.name)) {}

void Peers::forgo(Reception& reception, const std::string& secret, const std::string& name) {
  reception.end(digest_of(secret, name));
}

Peers::~Peers() {
  end();
}

void Peers::end() const {
  group_.reception->end(digest_);
}

namespace {

/// A failed route to the host (no route, a reset) may recover before the deadline; so may DNS.
UniqueFd connect_in_time(const Endpoint& endpoint, Deadline deadline, const Look& look) {
  const auto dns_limit = deadline.at_most(kDnsLimit);
  while (true) {
    try {
      return tcp_connect_once(endpoint, deadline, look);
    } catch (const Error& error) {
      const bool unknown = error.code() == ErrorCode::kUnavailable && !dns_limit.passed();
      if ((error.code() != ErrorCode::kTimeout && !unknown) || deadline.passed()) throw;
    }
    if (look) look();
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(kLookPause, deadline.left()));
  }
}

/// Of a failed connection, for a group that cannot do without it.
ErrorCode code_of(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kUnavailable:  // a server that is ending closes what it has accepted
      return ErrorCode::kPeerLost;
    case ErrorCode::kInvalidArgument:  // a stranger, whose connections are encrypted
      return ErrorCode::kMismatch;
    default:
      return error.code();
  }
}

}  // namespace

/// `look`, and whether the peer will answer at all.
Look Peers::watching(int peer, const Look& look) const {
  // In a collective the alarm adds as many questions.
  const std::chrono::nanoseconds pause = look_pause(group_.world_ranks.size());
  return [this, peer, &look, pause, next = Deadline::after(pause)]() mutable {
    if (look) look();
    if (!group_.why_silent || !next.passed()) return;
    const auto start = Deadline::Clock::now();
    const auto why = group_.why_silent(named(peer));
    if (!why.empty()) throw Error(ErrorCode::kPeerLost, why);
    // A store that hangs holds up the connection for a tenth of the time.
    const std::chrono::nanoseconds took = Deadline::Clock::now() - start;
    next = Deadline::after(std::max<std::chrono::nanoseconds>(pause, 10 * took));
  };
}

UniqueFd Peers::connect(int peer, Deadline deadline, const Look& given) const {
  const Look look = watching(peer, given);
  const auto endpoint = parse_endpoint(group_.endpoints[static_cast<size_t>(peer)], 0);
  const auto name = fmt::format("rank {} at {}", named(peer), to_string(endpoint));
  try {
    UniqueFd fd = connect_in_time(endpoint, deadline, look);
    // The server speaks first. With its whole hello it is no stranger and not frozen, and the rest
    // takes no time.
    set_option(fd.get(), SOL_SOCKET, SO_RCVLOWAT, sizeof(Hello));
    if (!await_ready(fd.get(), POLLIN, deadline, look)) {
      throw Error(ErrorCode::kTimeout, name + " does not answer");
    }
    set_option(fd.get(), SOL_SOCKET, SO_RCVLOWAT, 1);
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
    const auto code = code_of(error);
    // A program that is none of this job's may have a dead peer's port by now.
    const bool is_stranger = code == ErrorCode::kMismatch && group_.why_silent;
    const auto why = is_stranger ? group_.why_silent(named(peer)) : "";
    throw Error(why.empty() ? code : ErrorCode::kPeerLost,
                fmt::format("rank {} connecting to rank {}: {}", named(group_.rank), named(peer),
                            why.empty() ? error.what() : why));
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
              fmt::format("group '{}', rank {}: rank {} died or ended its process group",
                          group_.name, named(group_.rank), named(peer)));
}

namespace {
/// Selects one of two connections, and shows that its sender is in the same call.
constexpr char kHere = 'h';
}  // namespace

/// A peer that is not known to have come, and the connection that this rank made.
struct Peers::Half {
  int peer = -1;
  UniqueFd made;
  std::optional<NotInChild> not_in_child;
};

/// One call of meet().
class Peers::Encounter {
 public:
  Encounter(const Peers& peers, const LookAt& look)
      : peers_(peers), look_(look), sockets_(peers.group_.world_ranks.size()) {}

  /// Takes the peer's connection, or makes one.
  void begin(int peer, Deadline deadline) {
    if (take_theirs(peer)) return;
    Half& half = halves_.emplace_back();
    half.peer = peer;
    const auto look = [&] {
      if (is_over({peer})) throw Error(ErrorCode::kTimeout, "it did not come");
    };
    try {
      look();
      half.made = peers_.connect(peer, deadline, look);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kTimeout) throw_timeout({peer}, error.what());
      throw;
    }
    half.not_in_child.emplace(half.made.get());
  }

  std::vector<UniqueFd> finish(Deadline deadline) {
    while (true) {
      std::erase_if(halves_, [this](Half& half) { return has_come(half); });
      if (halves_.empty()) return std::move(sockets_);
      if (is_over(awaited()) || !await_any(deadline)) throw_timeout(awaited(), "");
    }
  }

 private:
  bool is_over(const std::vector<int>& awaited) const { return look_ && !look_(awaited); }

  std::vector<int> awaited() const {
    std::vector<int> ranks;
    for (const Half& half : halves_) ranks.push_back(half.peer);
    return ranks;
  }

  bool take_theirs(int peer) {
    UniqueFd theirs = peers_.take(peer);
    if (!theirs) return false;
    if (::send(theirs.get(), &kHere, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1) peers_.throw_left(peer);
    sockets_[static_cast<size_t>(peer)] = std::move(theirs);
    return true;
  }

  bool has_come(Half& half) {
    if (yields_to(half.peer) && take_theirs(half.peer)) return true;
    char said = 0;
    const ssize_t got = ::recv(half.made.get(), &said, 1, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (got != 1 || said != kHere) peers_.throw_left(half.peer);
    half.not_in_child.reset();
    sockets_[static_cast<size_t>(half.peer)] = std::move(half.made);
    // The peer's connection, which came before this message, is closed by now.
    peers_.group_.reception->forget(peers_.digest_, peers_.named(half.peer));
    return true;
  }

  bool yields_to(int peer) const { return peer > peers_.group_.rank; }

  /// Waits for any event, also the end of any of the connections. False: the deadline passed.
  bool await_any(Deadline deadline) {
    std::vector<pollfd> items;
    for (const Half& half : halves_) {
      items.push_back({half.made.get(), POLLIN, 0});
      if (yields_to(half.peer)) items.push_back({peers_.expect(half.peer), POLLIN, 0});
    }
    const int patience = deadline.at_most(kLookPause).left_poll_ms();
    return ::poll(items.data(), items.size(), patience) > 0 || !deadline.passed();
  }

  [[noreturn]] void throw_timeout(std::vector<int> ranks, const std::string& why) const {
    for (int& rank : ranks) rank = peers_.named(rank);
    const char* const plural = ranks.size() == 1 ? "" : "s";
    const auto refusal = peers_.group_.reception->last_refusal();
    const std::string reason = !refusal.empty() ? refusal
                               : !why.empty()   ? ": " + why
                                                : ": they did not come";
    throw Error(
        ErrorCode::kTimeout,
        fmt::format("group '{}', rank {}: no connection with rank{} {}{}", peers_.group_.name,
                    peers_.named(peers_.group_.rank), plural, rank_list(std::move(ranks)), reason));
  }

  const Peers& peers_;
  const LookAt& look_;
  std::vector<UniqueFd> sockets_;  // by rank
  std::list<Half> halves_;
};

std::vector<UniqueFd> Peers::meet(std::span<const int> peers, Deadline deadline,
                                  const LookAt& look) const {
  Encounter encounter(*this, look);
  for (const int peer : peers) encounter.begin(peer, deadline);
  return encounter.finish(deadline);
}

}  // namespace lockstep::tcp
