#include "lockstep/store/tcp/server_loop.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/base/socket.h"
#include "lockstep/store/tcp/shortcut.h"

namespace lockstep {
namespace {

/// What epoll reports for what; clients count on from the last.
enum : uint64_t { kListenerId, kShortcutId, kWakeId, kFirstClientId };

/// A client that does not take its replies is dropped beyond this. It is not served beyond
/// kPauseBacklog, so only waits of its that others end get it there.
constexpr size_t kMaxBacklog = 2 * kMaxReplyBytes;

/// How long the loop sleeps at most while signs of life are due; see ListeningClock.
constexpr auto kMaxSleep = 250ms;

constexpr auto kAcceptPause = 100ms;
constexpr int kAcceptsPerTurn = 64;

constexpr size_t kMaxRefusedHosts = 256;

/// Without the port.
std::string host_of(const std::string& peer) {
  return peer.substr(0, peer.rfind(':'));
}

/// For messages: the first few of them.
std::string held_keys(const StoreState& state, uint64_t client) {
  constexpr size_t kShown = 3;
  std::string text;
  size_t shown = 0;
  for (const auto& [key, ttl] : *state.held_by(client)) {
    if (shown++ == kShown) return text + ", ...";
    text += (text.empty() ? "" : ", ") + quote_key(key);
  }
  return text;
}

/// Takes what the hard limit allows; true when that is more than before. Done only when needed,
/// because the limit is inherited by every program that this process starts.
bool raise_fd_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return false;
  limit.rlim_cur = limit.rlim_max;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

}  // namespace

StoreServerLoop::StoreServerLoop(UniqueFd listener, std::string secret, Wire wire,
                                 std::chrono::milliseconds handshake_limit)
    : secret_(std::move(secret)),
      wire_(wire),
      handshake_limit_(handshake_limit),
      listener_(std::move(listener)),
      shortcut_(listen_shortcut(listener_.get())),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      clock_(std::chrono::steady_clock::now()),
      next_id_(kFirstClientId) {
  if (!epoll_ || !wake_) throw io_error("set up the store's server");
  start_accepting();
  add_to_epoll(wake_.get(), kWakeId, EPOLLIN);
}

void StoreServerLoop::add_to_epoll(int fd, uint64_t id, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) throw io_error("epoll_ctl");
}

void StoreServerLoop::start_accepting() {
  add_to_epoll(listener_.get(), kListenerId, EPOLLIN);
  if (shortcut_) add_to_epoll(shortcut_.get(), kShortcutId, EPOLLIN);
}

void StoreServerLoop::stop() {
  ::eventfd_write(wake_.get(), 1);
}

void StoreServerLoop::run() {
  std::vector<epoll_event> events(256);
  while (true) {
    // Room for all: whoever has sent something is heard before anybody is found silent.
    if (events.size() < clients_.size() + 2) events.resize(2 * clients_.size());
    const auto sleep = time_to_sleep();
    const int ready = wait_for_events(events, sleep);
    if (ready < 0 && errno != EINTR) throw io_error("epoll_wait");
    now_ = clock_.advance(std::chrono::steady_clock::now(), sleep);
    for (int i = 0; i < ready; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      if (event.data.u64 == kWakeId) return;
      if (event.data.u64 == kListenerId) {
        accept_clients(listener_);
      } else if (event.data.u64 == kShortcutId) {
        accept_clients(shortcut_);
      } else if (const auto it = clients_.find(event.data.u64); it != clients_.end()) {
        serve(*it->second, event.events);
      }
      drop_doomed();
    }
    drop_silent();
    drop_late_handshakes();
    resume_accepting();
  }
}

int StoreServerLoop::wait_for_events(std::vector<epoll_event>& events,
                                     std::optional<std::chrono::milliseconds> sleep) {
  return poll_spinning(spinning_, sleep ? static_cast<int>(sleep->count()) : -1, [&](int wait_ms) {
    return ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), wait_ms);
  });
}

/// Nothing: until something comes.
std::optional<std::chrono::milliseconds> StoreServerLoop::time_to_sleep() const {
  std::optional<std::chrono::milliseconds> least;
  const auto at_most = [&](std::chrono::milliseconds time) {
    least = std::clamp<std::chrono::milliseconds>(time, 0ms, least.value_or(1h));
  };
  if (!handshakes_.empty()) at_most(handshakes_.front().deadline.left());
  if (accept_again_) at_most(accept_again_->left());
  if (const auto due = life_signs_.next())
    at_most(std::min<std::chrono::milliseconds>(
        std::chrono::ceil<std::chrono::milliseconds>(*due - now_), kMaxSleep));
  return least;
}

void StoreServerLoop::accept_clients(const UniqueFd& listener) {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    UniqueFd fd = accept_one(listener);
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
  auto client = std::make_unique<ServerConnection>(std::move(fd), id, secret_, wire_);
  client->interest = EPOLLIN;
  add_to_epoll(client->fd(), id, client->interest);
  clients_[id] = std::move(client);
  count_clients();
  handshakes_.push_back({Deadline::after(handshake_limit_), id});
}

/// The next client that waits; empty when there is none, or no descriptor for it.
UniqueFd StoreServerLoop::accept_one(const UniqueFd& listener) {
  while (true) {
    UniqueFd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
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
    if (shortcut_) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, shortcut_.get(), nullptr);
  }
  accept_again_ = Deadline::after(kAcceptPause);
}

void StoreServerLoop::resume_accepting() {
  if (!accept_again_ || !accept_again_->passed()) return;
  accept_again_.reset();
  start_accepting();
}

/// Whether this is news of its host: who tries again and again is logged once, until it is let in.
bool StoreServerLoop::is_first_refusal(const ServerConnection& client) {
  if (refused_hosts_.size() >= kMaxRefusedHosts) refused_hosts_.clear();
  return refused_hosts_.insert(host_of(client.peer())).second;
}

void StoreServerLoop::serve(ServerConnection& client, uint32_t events) {
  bool alive = true;
  const bool was_proved = client.proved();
  try {
    const auto answer_it = [&](RequestFrame frame) { handle(client, std::move(frame)); };
    if ((events & EPOLLOUT) != 0) {
      alive = client.flush();
      if (alive) client.serve_requests(answer_it);
    }
    if (alive && (events & EPOLLIN) != 0) {
      life_signs_.heard(client.id(), now_);
      alive = client.receive(answer_it);
    } else if ((events & (EPOLLERR | EPOLLHUP)) != 0) {
      alive = false;
    }
    if (!was_proved && client.proved()) refused_hosts_.erase(host_of(client.peer()));
  } catch (const WrongSecret& error) {
    if (is_first_refusal(client))
      log_warn(std::string("store: a client is refused: ") + error.what());
    alive = false;
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
    if (frame.request.op == StoreOp::kHold)
      life_signs_.expect(client.id(), LifeSigns::Ttl(frame.request.number), now_);
    answer(state_.submit(ticket, std::move(frame.request)));
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

void StoreServerLoop::answer(const std::vector<StoreAnswer>& answers) {
  for (const auto& each : answers) answer(each);
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
  const auto woken = state_.drop_client(id);
  life_signs_.forget(id);
  clients_.erase(id);  // Closing takes it out of epoll.
  count_clients();
  answer(woken);
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
  while (!doomed_.empty()) {  // Dropping one tells others, of whom more may be found broken.
    const uint64_t id = doomed_.back();
    doomed_.pop_back();
    drop(id);
  }
}

void StoreServerLoop::drop_silent() {
  for (const uint64_t id :
       life_signs_.silent(now_, [&](uint64_t held) { return state_.shortest_ttl(held); })) {
    ServerConnection& client = *clients_.at(id);
    const std::string why = fmt::format(
        "nothing was heard of it for {} ms, so what it held is "
        "erased ({})",
        state_.shortest_ttl(id)->count(), held_keys(state_, id));
    log_warn("store: " + client.peer() + " is disconnected: " + why);
    StoreReply farewell;
    farewell.status = StoreReply::Status::kRefused;
    farewell.text = why;
    client.send(encode(ReplyFrame{0, std::move(farewell)}));
    drop(id);
  }
  drop_doomed();
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
