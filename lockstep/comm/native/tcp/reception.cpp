#include "lockstep/comm/native/tcp/reception.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "lockstep/base/literals.h"
#include "lockstep/base/log.h"
#include "lockstep/base/signal_blocking_thread.h"
#include "lockstep/base/socket.h"
#include "lockstep/deadline.h"
#include "lockstep/error.h"
#include "lockstep/world/addresses.h"

namespace lockstep::tcp {
namespace {

constexpr auto kGuestLimit = 30s;  // for its complete handshake and greeting
constexpr auto kOldAfter = 2s;
constexpr size_t kMaxGuests = 1024;  // that are not authenticated yet
constexpr size_t kMaxEnded = 1 << 16;
constexpr int kMaxWarnings = 16;  // a port scan must not fill the log

}  // namespace

/// A client that has not completed its proof and greeting.
struct Reception::Guest {
  Guest(UniqueFd accepted, const std::string& secret)
      : fd(std::move(accepted)),
        name(peer_name(fd.get())),
        handshake(std::make_unique<ServerHandshake>(secret, kPurpose)),
        limit(Deadline::after(kGuestLimit)),
        old_at(Deadline::after(kOldAfter)) {}

  size_t wanted() const {
    return handshake->done() ? sizeof greeting - said.size() : handshake->wanted();
  }
  /// Errors: those of ServerHandshake::feed().
  void feed(std::string_view bytes) {
    if (handshake->done()) {
      said.append(bytes);
      return;
    }
    handshake->feed(bytes, name);
    if (handshake->done()) say(handshake->answer());
  }
  /// Sends a few bytes into an empty buffer; a client that does not read them is closed soon.
  void say(std::string_view text) const {
    (void)::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  /// True if it must give up its place when others wait for one.
  bool is_old() const { return old_at.passed(); }

  UniqueFd fd;
  std::string name;
  std::unique_ptr<ServerHandshake> handshake;
  Deadline limit;
  Deadline old_at;
  std::string said;
  Greeting greeting;
};

Reception::Reception(int rank, const std::string& address, std::string secret)
    : rank_(rank), secret_(std::move(secret)) {
  if (secret_.empty() && !is_loopback(address)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("rank {} cannot listen on {}: without a job secret only loopback is "
                            "served; start the job with lockstep run, or set LOCKSTEP_SECRET",
                            rank_, address));
  }
  // The address may be another host's, behind NAT, or a name that means loopback here.
  listener_ = tcp_listen(listen_host(address), 0);
  not_in_child_ = std::make_unique<NotInChild>(listener_.get());
  endpoint_ = to_string(Endpoint{address, local_port(listener_.get())});
  stop_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop_) throw io_error("eventfd");
  thread_ = start_thread_with_signals_blocked([this] { serve(); });
}

Reception::~Reception() {
  if (generation_ != fork_generation()) {
    // The thread does not exist in the child; its state belongs to the parent.
    leave_to_parent(thread_);
    return;
  }
  ::eventfd_write(stop_.get(), 1);
  thread_.join();
}

UniqueFd Reception::take(const Digest& group, int from) {
  const MutexLock lock(mutex_);
  const auto slot = slots_.find({group, from});
  if (slot == slots_.end() || !slot->second.socket) return {};
  slot->second.not_in_child.reset();
  UniqueFd socket = std::move(slot->second.socket);
  slots_.erase(slot);
  return socket;
}

void Reception::forget(const Digest& group, int from) {
  const MutexLock lock(mutex_);
  slots_.erase({group, from});
}

int Reception::expect(const Digest& group, int from) {
  const MutexLock lock(mutex_);
  Slot& slot = slots_[{group, from}];
  if (!slot.arrived) {
    slot.arrived.reset(::eventfd(slot.socket ? 1 : 0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!slot.arrived) throw io_error("eventfd");
  }
  return slot.arrived.get();
}

void Reception::end(const Digest& group) {
  const MutexLock lock(mutex_);
  // A late connection to a group forgotten here is kept in vain, which is harmless.
  if (ended_.size() >= kMaxEnded) ended_.erase(ended_.begin());
  ended_.insert(group);
  const auto first = slots_.lower_bound({group, INT32_MIN});
  const auto last = slots_.upper_bound({group, INT32_MAX});
  slots_.erase(first, last);
}

std::string Reception::last_refusal() {
  const MutexLock lock(mutex_);
  return last_refusal_.empty() ? "" : "; last connection refused: " + last_refusal_;
}

void Reception::serve() {
  std::vector<Guest> guests;
  while (true) {
    std::vector<pollfd> items{{stop_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const Guest& guest : guests) items.push_back({guest.fd.get(), POLLIN, 0});
    // If many come at once, the rest waits in the kernel's queue, unless silent guests hold all
    // places.
    if (guests.size() >= kMaxGuests) items[1].events = 0;
    const bool full = items[1].events == 0;
    const int patience = guests.empty() ? -1
                         : full         ? guests.front().old_at.left_poll_ms()
                                        : guests.front().limit.left_poll_ms();
    ::poll(items.data(), items.size(), patience);
    if (items[0].revents != 0) return;
    for (size_t i = guests.size(); i-- > 0;) {
      const bool speaks = items[i + 2].revents != 0;
      if (speaks ? !stays(guests[i]) : guests[i].limit.passed()) {
        guests.erase(guests.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    if (guests.size() >= kMaxGuests && guests.front().is_old()) guests.erase(guests.begin());
    if (items[1].revents != 0) accept_all(guests);
  }
}

void Reception::accept_all(std::vector<Guest>& guests) {
  while (guests.size() < kMaxGuests) {
    UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd) {
      guests.emplace_back(std::move(fd), secret_);
      guests.back().say(guests.back().handshake->greeting());
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return errno == EAGAIN ? void() : cannot_accept(guests);
    }
  }
}

/// Most likely the process is out of descriptors: a stranger's connection is closed, else another
/// thread may close one. The connection stays in the queue, and the listener readable, hence the
/// pause.
void Reception::cannot_accept(std::vector<Guest>& guests) {
  const std::string why = fmt::format("cannot accept a connection: {}", std::strerror(errno));
  {
    const MutexLock lock(mutex_);
    if (last_refusal_ != why) log_warn(fmt::format("rank {}: {}", rank_, why));
    last_refusal_ = why;
  }
  if (!guests.empty()) guests.erase(guests.begin());
  ::poll(nullptr, 0, 10);
}

/// Reads the available bytes. False: this guest is accepted, refused or gone.
bool Reception::stays(Guest& guest) {
  try {
    while (const size_t wanted = guest.wanted()) {
      std::array<char, sizeof(Hello)> bytes;
      const ssize_t got = ::recv(guest.fd.get(), bytes.data(), wanted, MSG_DONTWAIT);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return true;
      if (got <= 0) return false;
      guest.feed({bytes.data(), static_cast<size_t>(got)});
    }
    admit(guest);
  } catch (const WrongSecret& error) {
    refuse(error);
    guest.say(ServerHandshake::refusal());  // last: then the guest may look at what was refused
  } catch (const Error& error) {
    refuse(error);
  }
  return false;
}

void Reception::admit(Guest& guest) {
  std::memcpy(&guest.greeting, guest.said.data(), sizeof guest.greeting);
  const auto& [group, from, to] = guest.greeting;
  if (to != rank_) {
    throw Error(ErrorCode::kMismatch,
                fmt::format("{}: rank {} came to rank {}, this is another", guest.name, from, to));
  }
  const MutexLock lock(mutex_);
  if (ended_.contains(group)) return;
  Slot& slot = slots_[{group, from}];
  if (slot.socket) {
    throw Error(ErrorCode::kMismatch, fmt::format("{}: rank {} came twice", guest.name, from));
  }
  slot.socket = std::move(guest.fd);
  slot.not_in_child = std::make_unique<NotInChild>(slot.socket.get());
  if (slot.arrived) ::eventfd_write(slot.arrived.get(), 1);
  // Only now: from here on, an end of the peer's connection does not mean that it never came.
  (void)::send(slot.socket.get(), &to, sizeof to, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Reception::refuse(const Error& error) {
  const std::string line = fmt::format("rank {}: connection refused: {}", rank_, error.what());
  ++num_refused_ <= kMaxWarnings ? log_warn(line) : log_debug(line);
  const MutexLock lock(mutex_);
  last_refusal_ = error.what();
}

}  // namespace lockstep::tcp
