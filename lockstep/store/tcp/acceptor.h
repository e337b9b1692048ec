#pragma once
// The part of a server's epoll loop that takes in clients.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/unique_fd.h"
#include "lockstep/store/tcp/accept_pause.h"
#include "lockstep/store/tcp/strangers.h"

namespace lockstep::inline internal {

/// Adds a descriptor, of which events have the number `id`. Errors: kIo.
void add_to_epoll(int epoll, int fd, uint64_t id, uint32_t events);
/// Changes the events of a client from `*interest` to `wanted`.
void change_interest(int epoll, int fd, uint64_t id, uint32_t wanted, uint32_t* interest);

/// For a new client: its messages leave at once, and the silence of its host is noticed.
void set_client_options(int fd);

/// Of a name as peer_name() gives it: the address without the port; else "this host".
std::string host_of_peer(const std::string& peer);

/// Listens, except while there are no descriptors for another client, or too many strangers.
class Acceptor {
 public:
  Acceptor(int epoll, const Strangers& strangers) : epoll_(epoll), strangers_(strangers) {}

  /// Adds a non-blocking listener. Its events have the number `id`. Errors: kIo.
  void listen_on(int listener, uint64_t id);

  /// Passes on clients that wait, up to 64: others have their turn, too. True: there is no room for
  /// another client, and that lasts.
  bool accept(int listener, const std::function<void(UniqueFd)>& take_in);

  /// Listens again if a pause is over.
  void resume();
  /// Time until resume() has something to do; nothing: there is no pause.
  std::optional<std::chrono::milliseconds> pause_left() const {
    return pause_.left(std::chrono::steady_clock::now());
  }

 private:
  struct Listener {
    int fd;
    uint64_t id;
  };
  bool begin_pause();

  const int epoll_;
  const Strangers& strangers_;
  std::vector<Listener> listeners_;
  AcceptPause pause_;
};

}  // namespace lockstep::inline internal
