#include "lockstep/store/tcp/acceptor.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "lockstep/base/descriptors.h"
#include "lockstep/base/socket.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

constexpr int kAcceptsPerTurn = 64;

/// The next client that waits. Empty, with errno: none waits (EAGAIN), or it cannot be accepted.
UniqueFd next_client(int listener) {
  while (true) {
    UniqueFd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd || errno == EAGAIN) return fd;
    if (errno == EINTR || errno == ECONNABORTED) continue;
    // Only when needed: child processes inherit the limit.
    if (errno == EMFILE && raise_soft_descriptor_limit()) continue;
    return fd;
  }
}

}  // namespace

void add_to_epoll(int epoll, int fd, uint64_t id, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) throw io_error("epoll_ctl");
}

void change_interest(int epoll, int fd, uint64_t id, uint32_t wanted, uint32_t* interest) {
  if (wanted == *interest) return;
  *interest = wanted;
  epoll_event event{};
  event.events = wanted;
  event.data.u64 = id;
  ::epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event);
}

void set_client_options(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  enable_keep_alive(fd);
}

std::string host_of_peer(const std::string& peer) {
  const size_t colon = peer.rfind(':');
  return colon == std::string::npos ? "this host" : peer.substr(0, colon);
}

void Acceptor::listen_on(int listener, uint64_t id) {
  add_to_epoll(epoll_, listener, id, EPOLLIN);
  listeners_.push_back({listener, id});
}

bool Acceptor::accept(int listener, const std::function<void(UniqueFd)>& take_in) {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    if (strangers_.full() || !has_descriptor_for_client(epoll_)) return begin_pause();
    UniqueFd fd = next_client(listener);
    if (!fd && errno != EAGAIN) return begin_pause();
    // The other listener's client may be the reason of a pause that is on.
    if (!pause_.is_on()) pause_.accepted();
    if (!fd) return false;
    take_in(std::move(fd));
  }
  return false;
}

bool Acceptor::begin_pause() {
  if (!pause_.is_on()) {
    for (const auto& each : listeners_) ::epoll_ctl(epoll_, EPOLL_CTL_DEL, each.fd, nullptr);
  }
  return pause_.begin(std::chrono::steady_clock::now());
}

void Acceptor::resume() {
  if (!pause_.is_over(std::chrono::steady_clock::now())) return;
  pause_.end(std::any_of(listeners_.begin(), listeners_.end(),
                         [](const Listener& each) { return has_waiting_client(each.fd); }));
  for (const auto& each : listeners_) add_to_epoll(epoll_, each.fd, each.id, EPOLLIN);
}

}  // namespace lockstep::inline internal
