#include "lockstep/comm/native/tcp/connect.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "lockstep/base/auth.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/base/socket.h"
#include "lockstep/base/text.h"

namespace lockstep::tcp {
namespace {

constexpr auto kGreetingLimit = 5s;       // for one peer that has begun to speak
constexpr size_t kMaxUngreeted = 1024;    // connections that have not spoken yet
constexpr const char* kPurpose = "comm";  // keeps a proof for the store from opening this port

/// Who speaks, in which group. Sent by both ends after the proof.
struct Greeting {
  Digest group{};
  int32_t rank = 0;
  int32_t size = 0;
};
static_assert(sizeof(Greeting) == 40);

Greeting make_greeting(const Rendezvous& self) {
  return {hmac_sha256(self.secret, "group " + self.group), self.rank, self.size};
}

/// The number by which messages call a rank.
int named(const Rendezvous& self, int rank) {
  return self.world_ranks.empty() ? rank : self.world_ranks[static_cast<size_t>(rank)];
}

std::string key_of(const Rendezvous& self, int rank) {
  return fmt::format("{}/tcp/{}", self.group, rank);
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.rfind("127.", 0) == 0;
}

UniqueFd listen_and_publish(const Rendezvous& self, Deadline deadline) {
  if (self.secret.empty() && !is_loopback(self.address)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("rank {} cannot listen on {}: without a job secret only loopback is "
                            "served; start the job with lockstep run, or set LOCKSTEP_SECRET",
                            named(self, self.rank), self.address));
  }
  UniqueFd listener = tcp_listen(self.address, 0);
  const Endpoint endpoint{self.address, local_port(listener.get())};
  self.store.set(key_of(self, self.rank), to_string(endpoint), deadline);
  return listener;
}

[[noreturn]] void throw_missing(const Rendezvous& self, std::vector<int> missing,
                                const std::string& why) {
  for (int& rank : missing) rank = named(self, rank);
  throw Error(ErrorCode::kTimeout,
              fmt::format("group '{}', rank {}: no connection with ranks {}{}", self.group,
                          named(self, self.rank), rank_list(std::move(missing)), why));
}

/// Waits until all peers have published where they listen.
void await_addresses(const Rendezvous& self, std::span<const int> peers, Deadline deadline) {
  std::vector<std::string> keys;
  for (const int peer : peers) keys.push_back(key_of(self, peer));
  try {
    self.store.wait(keys, deadline);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kTimeout) throw;
    std::vector<int> missing;
    for (const int peer : peers) {
      if (!self.store.try_get(key_of(self, peer), Deadline::after(kGreetingLimit)))
        missing.push_back(peer);
    }
    throw_missing(self, missing, ": they did not come");
  }
}

UniqueFd connect_to(const Rendezvous& self, int peer, Deadline deadline) {
  const auto endpoint = parse_endpoint(self.store.get(key_of(self, peer), deadline), 0);
  const std::string name = fmt::format("rank {} at {}", named(self, peer), to_string(endpoint));
  UniqueFd fd;
  try {
    fd = tcp_connect(endpoint, deadline);
    authenticate_client(fd.get(), self.secret, kPurpose, deadline);
    const Greeting own = make_greeting(self);
    Greeting theirs;
    send_all(fd.get(), &own, sizeof own, deadline, name);
    recv_all(fd.get(), &theirs, sizeof theirs, deadline, name);
    if (theirs.group != own.group || theirs.rank != peer || theirs.size != self.size)
      throw Error(ErrorCode::kMismatch, name + " answered for another group or rank");
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("rank {} connecting to rank {}: {}",
                                          named(self, self.rank), named(self, peer), error.what()));
  }
  return fd;
}

/// The rank that speaks on an accepted connection.
/// Errors: anything but an expected peer of this group.
int greet(const Rendezvous& self, int fd, std::span<const int> expected, Deadline deadline) {
  const std::string name = peer_name(fd);
  authenticate_server(fd, self.secret, kPurpose, deadline);
  const Greeting own = make_greeting(self);
  Greeting theirs;
  recv_all(fd, &theirs, sizeof theirs, deadline, name);
  const bool known = std::find(expected.begin(), expected.end(), theirs.rank) != expected.end();
  if (theirs.group != own.group || theirs.size != self.size || !known)
    throw Error(ErrorCode::kMismatch, name + " came for another group or twice");
  send_all(fd, &own, sizeof own, deadline, name);
  return theirs.rank;
}

/// Accepts the expected peers and sorts out everybody else.
class Reception {
 public:
  Reception(const Rendezvous& self, int listener, std::vector<int> expected)
      : self_(self), listener_(listener), expected_(std::move(expected)) {}

  void run(std::vector<UniqueFd>& sockets, Deadline deadline) {
    while (!expected_.empty()) {
      if (!poll_once(deadline)) throw_missing(self_, expected_, last_drop_);
      for (size_t i = 0; i < waiting_.size();) {
        if (auto state = state_of(waiting_[i].get()); state == Spoken::kNothing) {
          ++i;
        } else {
          UniqueFd fd = std::move(waiting_[i]);
          waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
          if (state == Spoken::kWhole) admit(std::move(fd), sockets, deadline);
        }
      }
    }
  }

 private:
  enum class Spoken { kNothing, kWhole, kGone };

  static Spoken state_of(int fd) {
    Hello hello;
    const ssize_t seen = ::recv(fd, &hello, sizeof hello, MSG_PEEK | MSG_DONTWAIT);
    if (seen == static_cast<ssize_t>(sizeof hello)) return Spoken::kWhole;
    return seen == 0 || (seen < 0 && errno != EAGAIN && errno != EINTR) ? Spoken::kGone
                                                                        : Spoken::kNothing;
  }

  /// False when the deadline passes first.
  bool poll_once(Deadline deadline) {
    std::vector<pollfd> items{{listener_, POLLIN, 0}};
    for (const auto& fd : waiting_) items.push_back({fd.get(), POLLIN, 0});
    // Part of a greeting keeps a descriptor readable; the pause keeps that from costing a core.
    if (::poll(items.data(), items.size(), deadline.left_poll_ms()) == 0) return false;
    if (items[0].revents == 0) ::poll(nullptr, 0, 1);
    if (items[0].revents != 0 && waiting_.size() < kMaxUngreeted) accept_all();
    if (waiting_.size() >= kMaxUngreeted) waiting_.erase(waiting_.begin());
    return !deadline.passed();
  }

  void accept_all() {
    while (true) {
      UniqueFd fd(::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (fd) {
        waiting_.push_back(std::move(fd));
      } else if (errno != EINTR && errno != ECONNABORTED) {
        return errno == EAGAIN ? void() : cannot_accept();
      }
    }
  }

  /// Most likely out of descriptors: a stranger's goes, else someone in this process may close one.
  /// The connection stays in the queue, and the listener readable, hence the pause.
  void cannot_accept() {
    const std::string why = fmt::format("cannot accept a connection: {}", std::strerror(errno));
    if (last_drop_.find(why) == std::string::npos)
      log_warn(fmt::format("rank {}: {}", named(self_, self_.rank), why));
    last_drop_ = "; " + why;
    if (!waiting_.empty()) waiting_.erase(waiting_.begin());
    ::poll(nullptr, 0, 10);
  }

  void admit(UniqueFd fd, std::vector<UniqueFd>& sockets, Deadline deadline) {
    try {
      const int peer = greet(self_, fd.get(), expected_, deadline.at_most(kGreetingLimit));
      std::erase(expected_, peer);
      sockets[static_cast<size_t>(peer)] = std::move(fd);
    } catch (const Error& error) {
      last_drop_ = fmt::format("; last connection refused: {}", error.what());
      log_warn(
          fmt::format("rank {}: connection refused: {}", named(self_, self_.rank), error.what()));
    }
  }

  const Rendezvous& self_;
  int listener_;
  std::vector<int> expected_;
  std::vector<UniqueFd> waiting_;  // accepted, nothing whole heard yet
  std::string last_drop_;
};

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

void tune_socket(int fd, std::chrono::milliseconds patience) {
  using std::chrono::duration_cast;
  const auto seconds =
      std::clamp<int64_t>(duration_cast<std::chrono::seconds>(patience).count(), 3, 24L * 3600);
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(1000 * seconds));
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, static_cast<int>(std::min<int64_t>(seconds / 3, 15)));
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, static_cast<int>(std::min<int64_t>(seconds / 3, 5)));
  choose_congestion_control(fd);
}

std::vector<UniqueFd> connect_peers(const Rendezvous& self, std::span<const int> peers,
                                    Deadline deadline) {
  std::vector<UniqueFd> sockets(static_cast<size_t>(self.size));
  if (peers.empty()) return sockets;
  const UniqueFd listener = listen_and_publish(self, deadline);
  await_addresses(self, peers, deadline);
  std::vector<int> higher;
  for (const int peer : peers) {
    if (peer > self.rank) {
      higher.push_back(peer);
    } else {
      sockets[static_cast<size_t>(peer)] = connect_to(self, peer, deadline);
    }
  }
  Reception(self, listener.get(), std::move(higher)).run(sockets, deadline);
  return sockets;
}

}  // namespace lockstep::tcp
