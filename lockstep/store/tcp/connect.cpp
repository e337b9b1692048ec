#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "lockstep/base/auth.h"
#include "lockstep/base/socket.h"
#include "lockstep/error.h"
#include "lockstep/store/tcp/shortcut.h"
#include "lockstep/store/tcp/tcp_store.h"
#include "lockstep/store/tcp/tcp_store_client.h"

namespace lockstep::inline internal {
namespace {

constexpr std::chrono::milliseconds kEndingTime{200};
constexpr std::chrono::milliseconds kEndingPause{5};
constexpr std::chrono::milliseconds kLongestPause{320};

enum class Knock {
  kWaits,   ///< Until the deadline.
  kCloses,  ///< As a server of this user does, or one that ends.
  kSpeaks,
};

/// Looks for the shortcut of the server at the other end of `knock` until that has answered, and a
/// moment longer.
UniqueFd await_shortcut(const UniqueFd& knock, Deadline deadline, Knock& answer) {
  // A host name has been resolved to an address here.
  const Endpoint place = parse_endpoint(peer_name(knock.get()), 0);
  std::optional<Deadline> last_try;
  answer = Knock::kWaits;
  while (true) {
    if (UniqueFd fd = connect_shortcut(place)) return fd;
    if (last_try ? last_try->passed() : deadline.passed()) return {};
    pollfd item{knock.get(), POLLIN, 0};
    if (last_try) {
      std::this_thread::sleep_for(kEndingPause);
    } else if (::poll(&item, 1, static_cast<int>(kEndingPause.count())) > 0) {
      char byte = 0;
      const bool speaks = ::recv(knock.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
      answer = speaks ? Knock::kSpeaks : Knock::kCloses;
      last_try = deadline.at_most(kEndingTime);
    }
  }
}

/// Waits until a server listens there, over TCP, and then uses its shortcut: TCP does not reveal
/// the peer's user. A running server of this user closes such a connection. A server that has just
/// died does so too, and another may listen later: a second attempt decides.
UniqueFd connect_to_own_user(const Endpoint& server, Deadline deadline) {
  if (UniqueFd fd = connect_shortcut(server)) return fd;
  Knock answer = Knock::kCloses;
  for (int knocks = 0; knocks < 2 && answer == Knock::kCloses; ++knocks) {
    if (knocks > 0 && deadline.passed()) break;
    const UniqueFd knock = tcp_connect(server, deadline);
    if (UniqueFd fd = await_shortcut(knock, deadline, answer)) return fd;
  }
  throw Error(answer == Knock::kWaits ? ErrorCode::kTimeout : ErrorCode::kMismatch,
              fmt::format("the server at {} is not a store of this user; without LOCKSTEP_SECRET "
                          "no other is trusted",
                          to_string(server)));
}

std::shared_ptr<Store> connect_and_prove(const Endpoint& server, const std::string& secret,
                                         Deadline deadline, Wire wire, bool own_user) {
  // A server that is just ending may still accept a connection, and closes it at its end. A closed
  // shortcut shows that it was a store, whose port closes a moment later. A server that has sent
  // its greeting may also have dropped this client as one of too many: there is room in a moment.
  auto patience = deadline.at_most(kEndingTime);
  bool is_ending = false;
  bool dropped = false;
  auto pause = kEndingPause;
  while (true) {
    UniqueFd fd;
    try {
      fd = own_user ? connect_to_own_user(server, deadline) : connect_shortcut(server);
      is_ending = is_ending || fd;
      if (!fd) fd = tcp_connect(server, deadline);
      auto tls = authenticate_client(fd.get(), secret, "store", wire, deadline);
      enable_keep_alive(fd.get());
      return std::make_shared<TcpStoreClient>(std::move(fd), std::move(tls), to_string(server));
    } catch (const Error& error) {
      const bool late = dropped && error.code() == ErrorCode::kTimeout;
      if (fd && error.code() == ErrorCode::kUnavailable) {  // not by tcp_connect()
        dropped = is_ending = true;
        patience = deadline;
        pause = std::min(2 * pause, kLongestPause);
      } else if (error.code() != ErrorCode::kPeerLost && !late) {
        throw;
      }
      if (late || (is_ending && patience.passed())) {
        throw Error(ErrorCode::kUnavailable,
                    fmt::format("the store at {} is ending{}", to_string(server),
                                dropped ? ", or drops this client as one of too many" : ""));
      }
    }
    if (!is_ending) {
      throw Error(ErrorCode::kMismatch,
                  fmt::format("{} closed the connection instead of greeting: it is not a store, "
                              "or is just ending",
                              to_string(server)));
    }
    std::this_thread::sleep_for(std::min(pause, patience.left()));
  }
}

}  // namespace

std::shared_ptr<Store> connect_tcp_store(const Endpoint& server, const std::string& secret,
                                         Deadline deadline, Wire wire) {
  check_wire(secret, wire);
  return connect_and_prove(server, secret, deadline, wire, secret.empty());
}

std::shared_ptr<Store> connect_user_store(const Endpoint& server, const std::string& secret,
                                          Deadline deadline) {
  return connect_and_prove(server, secret, deadline, Wire::kPlain, true);
}

}  // namespace lockstep::inline internal
