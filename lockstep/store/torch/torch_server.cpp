#include "lockstep/store/torch/torch_server.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lockstep/base/in_child.h"
#include "lockstep/base/log.h"
#include "lockstep/base/signal_blocking_thread.h"
#include "lockstep/base/socket.h"
#include "lockstep/deadline.h"
#include "lockstep/error.h"
#include "lockstep/store/tcp/acceptor.h"
#include "lockstep/store/tcp/out_buffer.h"
#include "lockstep/store/tcp/strangers.h"
#include "lockstep/store/torch/client_bytes.h"
#include "lockstep/store/torch/client_origin.h"
#include "lockstep/store/torch/torch_state.h"

namespace lockstep::inline internal {
namespace {

/// epoll's data of each descriptor; clients count on from the last.
enum : uint64_t { kTorchListenerId, kTorchWakeId, kFirstTorchClientId };

/// Read per turn, so that one busy client does not delay the others.
constexpr size_t kTorchReadBytes = 1 << 16;
/// With more than this to take, a client is not read from.
constexpr size_t kTorchPauseBacklog = 1 << 20;

}  // namespace

/// All but stop() runs in the server's thread.
class TorchStoreServer::Impl {
 public:
  Impl(UniqueFd listener, const TorchLimits& limits);
  ~Impl();

  int port() const { return local_port(listener_.get()); }

 private:
  struct Client {
    Client(UniqueFd socket, uint64_t number)
        : fd(std::move(socket)), not_in_child(fd.get()), id(number), peer(peer_name(fd.get())) {}

    bool may_read() const { return output.size() <= kTorchPauseBacklog; }

    UniqueFd fd;
    NotInChild not_in_child;
    uint64_t id;
    std::string peer;
    TorchReader reader;
    OutBuffer output;
    uint32_t interest = EPOLLIN;  ///< The events registered with epoll.
  };

  void run();
  int sleep_ms() const;
  void accept_clients();
  void take_in(UniqueFd fd);
  void refuse_user(int fd);
  void report_full();
  void serve(Client& client, uint32_t events);
  bool receive(Client& client);
  void carry_out_requests(Client& client);
  void send(const TorchReply& reply);
  void update_interest(Client& client);
  void refuse(const Client& client, const std::string& why);
  void drop(uint64_t id);

  void count(const Client& client);
  void keep_limits();
  void drop_largest(const ClientBytes& bytes, const std::string& why);
  void pause_reading();
  void resume_reading();
  void drop_strangers();

  const TorchLimits limits_;
  const uint32_t generation_ = fork_generation();
  UniqueFd listener_;
  NotInChild listener_not_in_child_;
  const bool own_user_only_ = is_loopback(listener_.get());
  UniqueFd epoll_{::epoll_create1(EPOLL_CLOEXEC)};
  UniqueFd wake_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  TorchState state_;
  uint64_t next_id_ = kFirstTorchClientId;
  std::unordered_map<uint64_t, Client> clients_;
  std::vector<uint64_t> doomed_;  ///< Found broken while another was being served.
  Strangers strangers_;           ///< Clients that have not greeted yet.
  ClientBytes unfinished_;        ///< Of requests, see TorchLimits.
  ClientBytes untaken_;           ///< Of replies.
  /// No request is carried out, and none is read, until replies are taken; at the latest then.
  std::optional<Deadline> pause_limit_;
  Refusals refusals_;
  Acceptor acceptor_{epoll_.get(), strangers_};
  std::thread thread_;
};

TorchStoreServer::Impl::Impl(UniqueFd listener, const TorchLimits& limits)
    : limits_(limits),
      listener_(std::move(listener)),
      listener_not_in_child_(listener_.get()),
      strangers_(limits.greeting) {
  if (!epoll_ || !wake_) throw io_error("set up the server of torch's store");
  acceptor_.listen_on(listener_.get(), kTorchListenerId);
  add_to_epoll(epoll_.get(), wake_.get(), kTorchWakeId, EPOLLIN);
  thread_ = start_thread_with_signals_blocked([this] {
    try {
      run();
    } catch (const std::exception& error) {
      log_error(std::string("the server of torch's store ended: ") + error.what());
    }
  });
}

TorchStoreServer::Impl::~Impl() {
  if (generation_ != fork_generation()) {
    leave_to_parent(thread_);
    return;
  }
  ::eventfd_write(wake_.get(), 1);
  thread_.join();
}

void TorchStoreServer::Impl::run() {
  std::array<epoll_event, 256> events;
  while (true) {
    const int ready =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), sleep_ms());
    if (ready < 0 && errno != EINTR) throw io_error("epoll_wait");
    for (int i = 0; i < ready; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      if (event.data.u64 == kTorchWakeId) return;
      if (event.data.u64 == kTorchListenerId) {
        accept_clients();
      } else if (const auto it = clients_.find(event.data.u64); it != clients_.end()) {
        serve(it->second, event.events);
      }
      keep_limits();
    }
    keep_limits();
    drop_strangers();
    acceptor_.resume();
  }
}

/// Until the next deadline; an hour if there is none.
int TorchStoreServer::Impl::sleep_ms() const {
  std::chrono::milliseconds least = std::chrono::hours(1);
  if (const auto left = acceptor_.pause_left()) least = std::min(least, *left);
  if (pause_limit_) least = std::min(least, pause_limit_->left());
  if (const auto due = strangers_.due_in(std::chrono::steady_clock::now())) {
    least = std::min(least, *due);
  }
  return static_cast<int>(least.count());
}

void TorchStoreServer::Impl::accept_clients() {
  const auto take_in_or_warn = [&](UniqueFd fd) {
    try {
      take_in(std::move(fd));
    } catch (const std::exception& error) {
      const auto more = refusals_.note("no client", std::chrono::steady_clock::now());
      if (!more) return;
      log_warn(std::string("torch's store: a client could not be taken in: ") + error.what());
    }
  };
  if (acceptor_.accept(listener_.get(), take_in_or_warn)) report_full();
}

void TorchStoreServer::Impl::take_in(UniqueFd fd) {
  set_client_options(fd.get());
  const auto origin = own_user_only_ ? client_origin(fd.get()) : ClientOrigin::kOwn;
  if (origin == ClientOrigin::kOther) refuse_user(fd.get());
  if (origin != ClientOrigin::kOwn) return;
  add_to_epoll(epoll_.get(), fd.get(), next_id_, EPOLLIN);
  const uint64_t id = next_id_++;
  const auto [client, is_new] = clients_.try_emplace(id, std::move(fd), id);
  // Many ranks of this host may come at once.
  const bool own_host = is_of_this_host(client->second.fd.get());
  strangers_.add(id, own_host ? "" : host_of_peer(client->second.peer),
                 std::chrono::steady_clock::now());
}

void TorchStoreServer::Impl::refuse_user(int fd) {
  if (const auto more = refusals_.note("another user", std::chrono::steady_clock::now())) {
    log_warn(fmt::format(
        "torch's store: {} is refused: it is of another user, and this job has one host; with "
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1, and without --master_port, rank 0 serves that store "
        "to all users{}",
        peer_name(fd), *more));
  }
}

void TorchStoreServer::Impl::report_full() {
  const auto more = refusals_.note("others", std::chrono::steady_clock::now());
  if (!more) return;
  if (strangers_.full()) {
    log_warn(
        fmt::format("torch's store: {} connections have not begun as a client of torch's "
                    "does; others wait{}",
                    Strangers::kMost, *more));
  } else {
    log_error(fmt::format(
        "torch's store has {} clients, and this process may open no more files: others wait; raise "
        "the limit on this host (ulimit -n){}",
        clients_.size(), *more));
  }
}

void TorchStoreServer::Impl::serve(Client& client, uint32_t events) {
  const uint64_t id = client.id;
  bool alive = true;
  try {
    if ((events & EPOLLOUT) != 0) {
      alive = client.output.put(client.fd.get(), {});
      if (alive) carry_out_requests(client);
    }
    if (alive && (events & EPOLLIN) != 0) {
      alive = receive(client);
    } else if ((events & (EPOLLERR | EPOLLHUP)) != 0) {
      alive = false;
    }
  } catch (const std::exception& error) {  // std::bad_alloc too: one client's, not the server's
    refuse(client, error.what());
    alive = false;
  }
  if (!alive) return drop(id);
  count(client);
  update_interest(client);
}

/// False: the client has closed.
bool TorchStoreServer::Impl::receive(Client& client) {
  std::array<char, kTorchReadBytes> buffer;
  const ssize_t got = ::recv(client.fd.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  client.reader.append({buffer.data(), static_cast<size_t>(got)});
  carry_out_requests(client);
  if (client.reader.greeted()) strangers_.forget(client.id);
  return true;
}

void TorchStoreServer::Impl::carry_out_requests(Client& client) {
  while (client.may_read() && !pause_limit_ && untaken_.total() <= limits_.untaken_bytes) {
    auto request = client.reader.next();
    if (!request) return;
    strangers_.forget(client.id);
    for (const TorchReply& reply : state_.submit(client.id, std::move(*request))) send(reply);
  }
}

void TorchStoreServer::Impl::send(const TorchReply& reply) {
  Client& client = clients_.at(reply.client);
  if (client.output.put(client.fd.get(), reply.bytes)) {
    count(client);
    update_interest(client);
  } else {
    doomed_.push_back(client.id);
  }
}

void TorchStoreServer::Impl::update_interest(Client& client) {
  const bool reads = client.may_read() && !pause_limit_;
  const uint32_t wanted = (client.output.size() > 0 ? EPOLLOUT : 0U) | (reads ? EPOLLIN : 0U);
  change_interest(epoll_.get(), client.fd.get(), client.id, wanted, &client.interest);
}

/// One line for each host within ten minutes: repeated attempts must not fill a disk.
void TorchStoreServer::Impl::refuse(const Client& client, const std::string& why) {
  const std::string host = host_of_peer(client.peer);
  if (const auto more = refusals_.note(host, std::chrono::steady_clock::now())) {
    log_warn(fmt::format("torch's store: {} is disconnected: {}{}", client.peer, why, *more));
  }
}

void TorchStoreServer::Impl::drop(uint64_t id) {
  state_.drop(id);
  strangers_.forget(id);
  unfinished_.set(id, 0);
  untaken_.set(id, 0);
  clients_.erase(id);  // closing removes it from epoll
}

void TorchStoreServer::Impl::count(const Client& client) {
  unfinished_.set(client.id, client.reader.unfinished_bytes() + state_.waiting_bytes(client.id));
  untaken_.set(client.id, client.output.size());
}

void TorchStoreServer::Impl::keep_limits() {
  for (const uint64_t id : std::exchange(doomed_, {})) drop(id);
  while (unfinished_.total() > limits_.unfinished_bytes) {
    drop_largest(unfinished_, fmt::format("of all clients' unfinished requests and awaited keys, "
                                          "more than {} bytes, it has the most",
                                          limits_.unfinished_bytes));
  }
  if (!pause_limit_ && untaken_.total() > limits_.untaken_bytes) pause_reading();
  if (!pause_limit_) return;
  const size_t enough = limits_.untaken_bytes / 2;
  while (pause_limit_->passed() && untaken_.total() > enough) {
    drop_largest(untaken_, fmt::format("of all replies that wait to be taken, more than {} bytes, "
                                       "it has the most, and others have waited for {} ms",
                                       limits_.untaken_bytes, limits_.taking.count()));
  }
  if (untaken_.total() > enough) return;
  resume_reading();
  if (untaken_.total() > limits_.untaken_bytes) pause_reading();  // what waited brought new replies
}

void TorchStoreServer::Impl::drop_largest(const ClientBytes& bytes, const std::string& why) {
  const uint64_t id = bytes.largest();
  refuse(clients_.at(id), why);
  drop(id);
}

void TorchStoreServer::Impl::pause_reading() {
  pause_limit_ = Deadline::after(limits_.taking);
  for (auto& [id, client] : clients_) update_interest(client);
}

/// Carries out the requests that came before the pause: no event follows for them.
void TorchStoreServer::Impl::resume_reading() {
  pause_limit_.reset();
  strangers_.restart(std::chrono::steady_clock::now());  // their greetings are read from now on
  std::vector<uint64_t> all;
  for (const auto& [id, client] : clients_) all.push_back(id);
  for (const uint64_t id : all) {
    const auto it = clients_.find(id);
    if (it != clients_.end()) serve(it->second, EPOLLOUT);
  }
}

void TorchStoreServer::Impl::drop_strangers() {
  // Greetings are not read meanwhile.
  if (pause_limit_) return strangers_.restart(std::chrono::steady_clock::now());
  for (const auto& [id, crowd] : strangers_.overdue(std::chrono::steady_clock::now())) {
    refuse(clients_.at(id), crowd ? "it is one of too many that have not begun as a client of "
                                    "torch's does"
                                  : fmt::format("in {} ms it has not begun as a client of torch's "
                                                "does",
                                                limits_.greeting.count()));
    drop(id);
  }
}

TorchStoreServer::TorchStoreServer(UniqueFd listener, const TorchLimits& limits)
    : impl_(std::make_unique<Impl>(std::move(listener), limits)) {}

TorchStoreServer::~TorchStoreServer() = default;

int TorchStoreServer::port() const {
  return impl_->port();
}

}  // namespace lockstep::inline internal
