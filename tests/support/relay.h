#pragma once
// A relay between two ends: forwards bytes, and records them all.

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/base/literals.h"
#include "lockstep/base/mutex.h"
#include "lockstep/base/socket.h"
#include "lockstep/error.h"

namespace lockstep::testing {

class Relay {
 public:
  /// Listens on a port of loopback, and connects each client to `to`.
  explicit Relay(Endpoint to)
      : to_(std::move(to)),
        listener_(tcp_listen("127.0.0.1", 0)),
        stop_(::eventfd(0, EFD_CLOEXEC)),
        thread_([this] { run(); }) {}
  ~Relay() {
    ::eventfd_write(stop_.get(), 1);
    thread_.join();
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  int port() const { return local_port(listener_.get()); }
  /// All bytes so far, of both directions.
  std::string seen() const {
    const MutexLock lock(mutex_);
    return seen_;
  }

 private:
  struct Link {
    std::array<UniqueFd, 2> ends;
  };

  void run() {
    std::deque<Link> links;
    while (true) {
      std::vector<pollfd> items = {{stop_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
      for (const Link& link : links) {
        for (const UniqueFd& end : link.ends) items.push_back({end.get(), POLLIN, 0});
      }
      ::poll(items.data(), items.size(), -1);
      if (items[0].revents != 0) return;
      for (size_t i = 0; i < links.size(); ++i) {
        for (const size_t side : {0U, 1U}) {
          if (items[2 + 2 * i + side].revents != 0) pass_on(&links[i], side);
        }
      }
      std::erase_if(links, [](const Link& link) { return !link.ends[0]; });
      if (items[1].revents != 0) accept(&links);
    }
  }

  void accept(std::deque<Link>* links) const {
    UniqueFd near = tcp_accept(listener_.get(), Deadline::after(30s));
    try {
      UniqueFd far = tcp_connect(to_, Deadline::after(1s));
      links->push_back({{std::move(near), std::move(far)}});
    } catch (const Error&) {
      // No server is there: closes.
    }
  }

  void pass_on(Link* link, size_t side) {
    std::array<char, 1 << 16> buffer;
    const ssize_t got = ::recv(link->ends[side].get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) return;
    try {
      if (got <= 0) throw Error(ErrorCode::kPeerLost, "closed");
      const auto size = static_cast<size_t>(got);
      send_all(link->ends[1 - side].get(), buffer.data(), size, Deadline::after(30s), "far end");
      const MutexLock lock(mutex_);
      seen_.append(buffer.data(), size);
    } catch (const Error&) {
      for (UniqueFd& end : link->ends) end.reset();
    }
  }

  const Endpoint to_;
  const UniqueFd listener_;
  const UniqueFd stop_;
  mutable Mutex mutex_;
  std::string seen_ LOCKSTEP_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace lockstep::testing
