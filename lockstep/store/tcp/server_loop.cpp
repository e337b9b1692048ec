#include "lockstep/store/tcp/server_loop.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "lockstep/base/literals.h"
#include "lockstep/base/log.h"
#include "lockstep/base/namespaces.h"
#include "lockstep/base/socket.h"
#include "lockstep/error.h"
#include "lockstep/store/tcp/shortcut.h"

namespace lockstep::inline internal {
namespace {

/// epoll's data of each descriptor; clients count on from the last.
enum : uint64_t { kListenerId, kShortcutId, kWakeId, kFirstClientId };

/// A client with a larger backlog is dropped. It is not served beyond kPauseBacklog, so only waits
/// that other clients end can take it there.
constexpr size_t kMaxBacklog = 2 * kMaxReplyBytes;

/// Longest sleep of the loop while heartbeats are due; see ListeningClock.
constexpr auto kMaxSleep = 250ms;

constexpr auto kReportFullEvery = 10min;

rlimit descriptor_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit;
}

/// For messages: the first few leased keys.
std::string leased_keys(const StoreState& state, uint64_t client) {
  constexpr size_t kShown = 3;
  std::string text;
  size_t shown = 0;
  for (const auto& [key, ttl] : *state.leased_by(client)) {
    if (shown++ == kShown) return text + ", ...";
    text += (text.empty() ? "" : ", ") + quote_key(key);
  }
  return text;
}

}  // namespace

StoreServerLoop::StoreServerLoop(UniqueFd listener, std::string secret, Wire wire,
                                 std::chrono::milliseconds handshake_limit, bool own_user_only,
                                 std::function<void(const std::string& why)> on_full)
    : secret_(std::move(secret)),
      wire_(wire),
      own_user_only_(own_user_only),
      on_full_(std::move(on_full)),
      listener_(std::move(listener)),
      shortcut_(listen_shortcut(listener_.get())),
      listener_not_in_child_(listener_.get()),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      clock_(std::chrono::steady_clock::now()),
      next_id_(kFirstClientId),
      strangers_(handshake_limit) {
  if (!epoll_ || !wake_) throw io_error("set up the store's server");
  if (own_user_only_ && !shortcut_) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("port {} is already in use: another process has its name among the "
                            "sockets of this host; choose another, or 0 for a free one",
                            local_port(listener_.get())));
  }
  if (shortcut_) shortcut_not_in_child_.emplace(shortcut_.get());
  acceptor_.listen_on(listener_.get(), kListenerId);
  if (shortcut_) acceptor_.listen_on(shortcut_.get(), kShortcutId);
  add_to_epoll(epoll_.get(), wake_.get(), kWakeId, EPOLLIN);
}

void StoreServerLoop::stop() {
  ::eventfd_write(wake_.get(), 1);
}

void StoreServerLoop::run() {
  std::vector<epoll_event> events(256);
  while (true) {
    // Room for all: everything sent is read before any client counts as silent.
    const size_t needed = clients_.size() + kFirstClientId;
    if (events.size() < needed) events.resize(2 * needed);
    const auto sleep = time_to_sleep();
    const int ready = wait_for_events(events, sleep);
    if (ready < 0 && errno != EINTR) throw io_error("epoll_wait");
    now_ = clock_.advance(std::chrono::steady_clock::now(), sleep);
    serve_call_slots();
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
    drop_strangers();
    acceptor_.resume();
  }
}

int StoreServerLoop::wait_for_events(std::vector<epoll_event>& events,
                                     std::optional<std::chrono::milliseconds> sleep) {
  int ready = 0;
  poll_spinning(spinning_, sleep ? static_cast<int>(sleep->count()) : -1, [&](int wait_ms) {
    const bool raised = wait_ms == 0 ? call_slots_.any_raised_soon() : call_slots_.about_to_sleep();
    ready = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                         raised ? 0 : wait_ms);
    if (wait_ms != 0) call_slots_.awake();
    return raised || ready != 0 ? 1 : 0;
  });
  return ready;
}

/// Nothing: until an event comes.
std::optional<std::chrono::milliseconds> StoreServerLoop::time_to_sleep() const {
  std::optional<std::chrono::milliseconds> least;
  const auto at_most = [&](std::chrono::milliseconds time) {
    least = std::clamp<std::chrono::milliseconds>(time, 0ms, least.value_or(1h));
  };
  if (const auto due = strangers_.due_in(std::chrono::steady_clock::now())) at_most(*due);
  if (const auto left = acceptor_.pause_left()) at_most(*left);
  if (const auto due = heartbeats_.next())
    at_most(std::min<std::chrono::milliseconds>(
        std::chrono::ceil<std::chrono::milliseconds>(*due - now_), kMaxSleep));
  return least;
}

void StoreServerLoop::accept_clients(const UniqueFd& listener) {
  const auto take_in = [&](UniqueFd fd) {
    try {
      if (may_come_in(listener, fd)) add_client(std::move(fd));
    } catch (const std::exception& error) {
      log_warn(std::string("store: a client could not be taken in: ") + error.what());
    }
  };
  if (acceptor_.accept(listener.get(), take_in)) report_full();
}

/// Without a secret the kernel's report of a peer's user has to do. TCP has none; a client that
/// connects that way, to test whether a server listens, is closed.
bool StoreServerLoop::may_come_in(const UniqueFd& listener, const UniqueFd& fd) {
  if (!own_user_only_) return true;
  if (listener.get() == shortcut_.get() && is_process_of(::geteuid(), fd.get())) return true;
  if (listener.get() != shortcut_.get()) return false;
  if (const auto more = refusals_.note("another user", std::chrono::steady_clock::now())) {
    log_warn(
        fmt::format("store: {} is refused: it belongs to another user, and this job has no "
                    "LOCKSTEP_SECRET{}",
                    peer_name(fd.get()), *more));
  }
  return false;
}

void StoreServerLoop::add_client(UniqueFd fd) {
  set_client_options(fd.get());
  const uint64_t id = next_id_++;
  auto client = std::make_unique<ServerConnection>(std::move(fd), id, secret_, wire_);
  client->interest = EPOLLIN;
  add_to_epoll(epoll_.get(), client->fd(), id, client->interest);
  clients_[id] = std::move(client);
  count_clients();
  const ServerConnection& added = *clients_.at(id);
  // Many ranks of this host connect at once; each proves itself when it gets a core.
  strangers_.add(id, added.is_own() ? "" : host_of_peer(added.peer()),
                 std::chrono::steady_clock::now());
}

void StoreServerLoop::report_full() {
  const bool by_strangers = strangers_.full();
  const std::string why =
      by_strangers ? fmt::format("{} connections have not proved this job's secret; others wait",
                                 Strangers::kMost)
                   : fmt::format(
                         "this process may open {} files, and has {} clients: others cannot come "
                         "in; raise the limit on this host (ulimit -n)",
                         descriptor_limit().rlim_cur, clients_.size());
  // Strangers become clients or are dropped, so on_full_ is only called without any.
  if (!by_strangers && strangers_.none() && on_full_) std::exchange(on_full_, nullptr)(why);
  if (report_full_again_ && !report_full_again_->passed()) return;
  report_full_again_ = Deadline::after(kReportFullEvery);
  if (by_strangers) {
    log_warn("store: " + why);
  } else {
    log_error("store: " + why);
  }
}

/// One line for each host, not for each client: repeated attempts must not fill a disk.
void StoreServerLoop::report_refused(const ServerConnection& client, const std::string& what) {
  const auto more = refusals_.note(host_of_peer(client.peer()), std::chrono::steady_clock::now());
  if (more) log_warn("store: " + what + *more);
}

/// Drops the client if `work` returns false or throws.
template <class Work>
void StoreServerLoop::attend(ServerConnection& client, const Work& work) {
  bool alive = false;
  try {
    alive = work();
  } catch (const WrongSecret& error) {
    report_refused(client, std::string("a client is refused: ") + error.what());
  } catch (const std::exception& error) {  // std::bad_alloc too: one client's, not the server's
    report_refused(client, client.peer() + " is refused: " + error.what());
  }
  if (!alive) {
    drop(client.id());
  } else {
    update_interest(client);
  }
}

void StoreServerLoop::serve(ServerConnection& client, uint32_t events) {
  attend(client, [&] {
    const bool was_proved = client.proved();
    if ((events & EPOLLOUT) != 0) {
      if (!client.flush()) return false;
      client.serve_requests(handler_of(client));
    }
    if ((events & EPOLLIN) == 0) return (events & (EPOLLERR | EPOLLHUP)) == 0;
    heartbeats_.heard(client.id(), now_);
    const bool alive = client.receive(handler_of(client));
    if (!was_proved && client.proved()) {
      strangers_.forget(client.id());
      refusals_.forget(host_of_peer(client.peer()));
    }
    return alive;
  });
}

/// Serves each client that has raised its flag, and then the clients that raise theirs meanwhile. A
/// look at epoll would be a system call.
void StoreServerLoop::serve_call_slots() {
  constexpr int kMostRounds = 16;
  for (int round = 0; round < kMostRounds; ++round) {
    if (!(round == 0 ? call_slots_.any_raised() : call_slots_.any_raised_soon())) return;
    for (const uint64_t id : call_slots_.take_raised()) {
      const auto it = clients_.find(id);
      if (it == clients_.end()) continue;
      ServerConnection& client = *it->second;
      attend(client, [&] {
        client.serve_requests(handler_of(client));
        return true;
      });
      drop_doomed();
    }
  }
}

ServerConnection::OnRequest StoreServerLoop::handler_of(ServerConnection& client) {
  return [this, &client](RequestFrame frame) {
    heartbeats_.heard(client.id(), now_);
    handle(client, std::move(frame));
  };
}

void StoreServerLoop::handle(ServerConnection& client, RequestFrame frame) {
  const StoreTicket ticket{client.id(), frame.id};
  if (frame.request.op == StoreOp::kOpenCallSlot) {
    if (!client.answer_with_call_slot(frame.id, call_slots_)) doomed_.push_back(client.id());
  } else if (frame.request.op != StoreOp::kCancel) {
    if (frame.request.op == StoreOp::kSetWithLease)
      heartbeats_.expect(client.id(), Heartbeats::Ttl(frame.request.number), now_);
    answer(state_.submit(ticket, std::move(frame.request)));
  } else if (auto reply = state_.cancel(ticket)) {
    answer({ticket, std::move(*reply)});
  }
}

void StoreServerLoop::answer(const StoreAnswer& answer) {
  ServerConnection& client = *clients_.at(answer.to.client);
  const bool alive = client.answer(answer.to.request, answer.reply);
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
  change_interest(epoll_.get(), client.fd(), client.id(), client.wanted_events(), &client.interest);
}

void StoreServerLoop::drop(uint64_t id) {
  const auto woken = state_.drop_client(id);
  heartbeats_.forget(id);
  strangers_.forget(id);
  if (const auto it = clients_.find(id); it != clients_.end()) {
    if (const auto index = it->second->call_slot()) call_slots_.close(*index);
    clients_.erase(it);  // closing removes it from epoll
  }
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
  while (!doomed_.empty()) {  // dropping a client sends to others, which may turn out broken
    const uint64_t id = doomed_.back();
    doomed_.pop_back();
    drop(id);
  }
}

void StoreServerLoop::drop_silent() {
  for (const uint64_t id :
       heartbeats_.silent(now_, [&](uint64_t holder) { return state_.shortest_ttl(holder); })) {
    ServerConnection& client = *clients_.at(id);
    const std::string why = fmt::format(
        "nothing was heard of it for {} ms, so its keys are "
        "erased ({})",
        state_.shortest_ttl(id)->count(), leased_keys(state_, id));
    log_warn("store: " + client.peer() + " is disconnected: " + why);
    StoreReply farewell;
    farewell.status = StoreReply::Status::kRefused;
    farewell.text = why;
    client.send(encode(ReplyFrame{0, std::move(farewell)}));
    drop(id);
  }
  drop_doomed();
}

void StoreServerLoop::drop_strangers() {
  for (const auto& [id, crowd] : strangers_.overdue(std::chrono::steady_clock::now())) {
    const ServerConnection& client = *clients_.at(id);
    report_refused(client,
                   client.peer() + (crowd ? " is one of too many that did not prove themselves"
                                          : " did not prove itself in time"));
    drop(id);
  }
}

}  // namespace lockstep::inline internal
