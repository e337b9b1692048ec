#include "lockstep/store/tcp/server_loop.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/base/socket.h"

namespace lockstep {
namespace {

/// What epoll reports for what; clients count on from the last.
enum : uint64_t { kListenerId, kWakeId, kFirstClientId };

/// A client that does not take its replies is dropped beyond this. It is not served beyond
/// kPauseBacklog, so only waits of its that others end get it there.
constexpr size_t kMaxBacklog = 2 * kMaxReplyBytes;

constexpr auto kAcceptPause = 100ms;
constexpr int kAcceptsPerTurn = 64;

/// Takes what the hard limit allows; true when that is more than before. Done only when needed,
/// because the limit is inherited by every program that this process starts.
bool raise_fd_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return false;
  limit.rlim_cur = limit.rlim_max;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

}  // namespace

StoreServerLoop::StoreServerLoop(UniqueFd listener, std::string secret,
                                 std::chrono::milliseconds handshake_limit)
    : secret_(std::move(secret)),
      handshake_limit_(handshake_limit),
      listener_(std::move(listener)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      next_id_(kFirstClientId) {
  if (!epoll_ || !wake_) throw io_error("set up the store's server");
  add_to_epoll(listener_.get(), kListenerId, EPOLLIN);
  add_to_epoll(wake_.get(), kWakeId, EPOLLIN);
}

void StoreServerLoop::add_to_epoll(int fd, uint64_t id, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) throw io_error("epoll_ctl");
}

void StoreServerLoop::stop() {
  ::eventfd_write(wake_.get(), 1);
}

void StoreServerLoop::run() {
  std::array<epoll_event, 256> events;
  while (true) {
    const int ready = ::epoll_wait(epoll_.get(), events.data(), events.size(), wait_ms());
    if (ready < 0 && errno != EINTR) throw io_error("epoll_wait");
    for (int i = 0; i < ready; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      if (event.data.u64 == kWakeId) return;
      if (event.data.u64 == kListenerId) {
        accept_clients();
      } else if (const auto it = clients_.find(event.data.u64); it != clients_.end()) {
        serve(*it->second, event.events);
      }
      drop_doomed();
    }
    drop_late_handshakes();
    resume_accepting();
  }
}

int StoreServerLoop::wait_ms() const {
  std::optional<int> least;
  if (!handshakes_.empty()) least = handshakes_.front().deadline.left_poll_ms();
  if (accept_again_) {
    const int pause = accept_again_->left_poll_ms();
    least = least ? std::min(*least, pause) : pause;
  }
  return least.value_or(-1);
}

void StoreServerLoop::accept_clients() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    UniqueFd fd = accept_one();
    if (!fd) return;
    try {
      add_client(std::move(fd));
    } catch (const std::exception& error) {
      log_warn(std::string("store: a client could not be taken in: ") + error.what());
    }
  }
}

void StoreServerLoop::add_client(UniqueFd fd) {
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  enable_keep_alive(fd.get());
  const uint64_t id = next_id_++;
  auto client = std::make_unique<ServerConnection>(std::move(fd), id, secret_);
  client->interest = EPOLLIN;
  add_to_epoll(client->fd(), id, client->interest);
  clients_[id] = std::move(client);
  count_clients();
  handshakes_.push_back({Deadline::after(handshake_limit_), id});
}

/// The next client that waits; empty when there is none, or no descriptor for it.
UniqueFd StoreServerLoop::accept_one() {
  while (true) {
    UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd || errno == EAGAIN) return fd;
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EMFILE && raise_fd_limit()) continue;
    pause_accepting();
    return {};
  }
}

void StoreServerLoop::pause_accepting() {
  if (!accept_again_) {
    log_warn(
        fmt::format("store: no file descriptors left at {} clients; others have to wait "
                    "(ulimit -n)",
                    clients_.size()));
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
  }
  accept_again_ = Deadline::after(kAcceptPause);
}

void StoreServerLoop::resume_accepting() {
  if (!accept_again_ || !accept_again_->passed()) return;
  accept_again_.reset();
  add_to_epoll(listener_.get(), kListenerId, EPOLLIN);
}

void StoreServerLoop::serve(ServerConnection& client, uint32_t events) {
  bool alive = true;
  try {
    const auto answer_it = [&](RequestFrame frame) { handle(client, std::move(frame)); };
    if ((events & EPOLLOUT) != 0) {
      alive = client.flush();
      if (alive) client.serve_requests(answer_it);
    }
    if (alive && (events & EPOLLIN) != 0) {
      alive = client.receive(answer_it);
    } else if ((events & (EPOLLERR | EPOLLHUP)) != 0) {
      alive = false;
    }
  } catch (const std::exception& error) {  // std::bad_alloc too: one client's, not the server's
    log_warn("store: " + client.peer() + " is refused: " + error.what());
    alive = false;
  }
  if (!alive) {
    drop(client.id());
  } else {
    update_interest(client);
  }
}

void StoreServerLoop::handle(ServerConnection& client, RequestFrame frame) {
  const StoreTicket ticket{client.id(), frame.id};
  if (frame.request.op != StoreOp::kCancel) {
    for (const auto& each : state_.submit(ticket, std::move(frame.request))) answer(each);
  } else if (auto reply = state_.cancel(ticket)) {
    answer({ticket, std::move(*reply)});
  }
}

void StoreServerLoop::answer(const StoreAnswer& answer) {
  ServerConnection& client = *clients_.at(answer.to.client);
  const bool alive = client.send(encode(ReplyFrame{answer.to.request, answer.reply}));
  if (!alive || client.backlog() > kMaxBacklog) {
    doomed_.push_back(client.id());
  } else {
    update_interest(client);
  }
}

void StoreServerLoop::update_interest(ServerConnection& client) {
  const uint32_t wanted = (client.backlog() > 0 ? EPOLLOUT : 0U) |
                          (client.backlog() <= ServerConnection::kPauseBacklog ? EPOLLIN : 0U);
  if (wanted == client.interest) return;
  client.interest = wanted;
  epoll_event event{};
  event.events = wanted;
  event.data.u64 = client.id();
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, client.fd(), &event);
}

void StoreServerLoop::drop(uint64_t id) {
  state_.drop_client(id);
  clients_.erase(id);  // Closing takes it out of epoll.
  count_clients();
}

void StoreServerLoop::count_clients() {
  const MutexLock lock(count_mutex_);
  num_clients_ = clients_.size();
  count_changed_.notify_all();
}

bool StoreServerLoop::wait_until_unused(Deadline deadline) {
  MutexLock lock(count_mutex_);
  while (num_clients_ > 0) {
    if (deadline.passed()) return false;
    count_changed_.wait_until(lock, deadline.when());
  }
  return true;
}

void StoreServerLoop::drop_doomed() {
  for (const uint64_t id : doomed_) drop(id);
  doomed_.clear();
}

void StoreServerLoop::drop_late_handshakes() {
  while (!handshakes_.empty()) {
    const auto it = clients_.find(handshakes_.front().id);
    const bool settled = it == clients_.end() || it->second->proved();
    if (!settled && !handshakes_.front().deadline.passed()) return;
    if (!settled) {
      log_warn("store: " + it->second->peer() + " did not prove itself in time");
      drop(it->first);
    }
    handshakes_.pop_front();
  }
}

}  // namespace lockstep
