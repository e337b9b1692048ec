#include "lockstep/store/tcp/tcp_store_client.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/base/in_child.h"
#include "lockstep/base/literals.h"
#include "lockstep/base/mutex.h"
#include "lockstep/base/tls.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/error.h"
#include "lockstep/store/request_store.h"
#include "lockstep/store/tcp/out_buffer.h"
#include "lockstep/store/tcp/protocol.h"
#include "lockstep/store/tcp/spinning.h"

namespace lockstep::inline internal {
namespace {

/// After a wait's deadline the server must report the missing keys at once.
constexpr auto kGrace = 1s;
/// Requests that an unresponsive server may leave here, before callers wait for room.
constexpr size_t kMaxOutput = 2 * kMaxRequestBytes;

/// How long a lone call waits in recv() before it looks at its deadline.
constexpr timeval kLookTime{.tv_sec = 1, .tv_usec = 0};

using Received = std::array<char, 1 << 14>;

/// A sending thread does not learn that the leader has left: it checks this often.
constexpr auto kPushTime = 10ms;

/// Waits for others; get() mostly finds its key.
bool waits_long(StoreOp op) {
  return op == StoreOp::kWait || op == StoreOp::kWatch || op == StoreOp::kArrive;
}

bool waits(StoreOp op) {
  return op == StoreOp::kGet || waits_long(op);
}

}  // namespace

/// Threads that wait for replies take turns at the socket. One of them, the leader, polls and
/// distributes replies; after its own reply it leaves, and another leads. A lone caller thus sends
/// and receives by itself, without a context switch.
class TcpStoreClient final : public RequestStore {
 public:
  /// `fd`: connected and authenticated. `tls`: the session of authenticate_client().
  TcpStoreClient(UniqueFd fd, std::unique_ptr<TlsSession> tls, std::string server);

 private:
  /// A call in progress; it lives on its thread's stack.
  struct Call {
    std::optional<StoreReply> reply;
    bool may_spin = false;
    uint64_t queued_until = 0;  ///< Its bytes are out once this many have been sent.
    CondVar wake;  ///< Its reply is there, the connection is lost, there is room, or nobody leads.
  };
  class Registration;

  StoreReply call(StoreRequest request, Deadline deadline) override;
  std::string name() const override { return "store at " + server_; }

  std::string send_request(uint64_t id, StoreRequest request, Call& own) LOCKSTEP_REQUIRES(mutex_);
  void wait_for_room(MutexLock& lock, Call& own, Deadline deadline) LOCKSTEP_REQUIRES(mutex_);
  void wait_for_reply(MutexLock& lock, Call& own, Deadline deadline) LOCKSTEP_REQUIRES(mutex_);
  void step(MutexLock& lock, Call& own, Deadline deadline) LOCKSTEP_REQUIRES(mutex_);
  void lead_once(bool may_spin, Deadline deadline) LOCKSTEP_REQUIRES(mutex_);
  void lead_in_recv(int wait_ms) LOCKSTEP_REQUIRES(mutex_);
  void push_once(Deadline deadline) LOCKSTEP_REQUIRES(mutex_);
  void flush_for_all() LOCKSTEP_REQUIRES(mutex_);
  void queue(std::string frame, Call& own) LOCKSTEP_REQUIRES(mutex_);
  uint64_t sent() const LOCKSTEP_REQUIRES(mutex_) { return queued_ - output_.size(); }
  void flush() LOCKSTEP_REQUIRES(mutex_);
  void sending_failed() LOCKSTEP_REQUIRES(mutex_);
  void receive() LOCKSTEP_REQUIRES(mutex_);
  bool took(const Received& buffer, ssize_t got) LOCKSTEP_REQUIRES(mutex_);
  void take(std::string_view bytes) LOCKSTEP_REQUIRES(mutex_);
  void deliver() LOCKSTEP_REQUIRES(mutex_);
  void lose(const std::string& why) LOCKSTEP_REQUIRES(mutex_);
  void wake_all() LOCKSTEP_REQUIRES(mutex_);
  void check_connection() const LOCKSTEP_REQUIRES(mutex_);

  const UniqueFd fd_;
  const NotInChild not_in_child_;  ///< Else a rank's forked child would hide its death.
  const std::string server_;

  Mutex mutex_;
  const std::unique_ptr<TlsSession> tls_ LOCKSTEP_GUARDED_BY(mutex_);
  uint64_t last_id_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Call*> calls_ LOCKSTEP_GUARDED_BY(mutex_);
  bool led_ LOCKSTEP_GUARDED_BY(mutex_) = false;     ///< A thread polls the socket for replies.
  OutBuffer output_ LOCKSTEP_GUARDED_BY(mutex_);     ///< Bytes that the socket did not take yet.
  uint64_t queued_ LOCKSTEP_GUARDED_BY(mutex_) = 0;  ///< Bytes sent so far, and output_.
  Spinning spinning_;                                ///< Used by the thread that leads.
  FrameReader reader_ LOCKSTEP_GUARDED_BY(mutex_){kMaxReplyBody};
  /// Why the connection was lost ("is gone: ..."); empty: it was not.
  std::string lost_ LOCKSTEP_GUARDED_BY(mutex_);
};

/// Registers a call while it runs; at its end another thread leads if necessary. Made and destroyed
/// under the client's lock.
class TcpStoreClient::Registration {
 public:
  Registration(TcpStoreClient& client, uint64_t id, Call& call) LOCKSTEP_NO_THREAD_SAFETY_ANALYSIS
      : client_(client),
        id_(id) {
    client_.calls_[id_] = &call;
  }
  ~Registration() LOCKSTEP_NO_THREAD_SAFETY_ANALYSIS {
    client_.calls_.erase(id_);
    if (!client_.led_ && !client_.calls_.empty()) client_.calls_.begin()->second->wake.notify_one();
  }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

 private:
  TcpStoreClient& client_;
  uint64_t id_;
};

TcpStoreClient::TcpStoreClient(UniqueFd fd, std::unique_ptr<TlsSession> tls, std::string server)
    : fd_(std::move(fd)),
      not_in_child_(fd_.get()),
      server_(std::move(server)),
      tls_(std::move(tls)) {
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &kLookTime, sizeof kLookTime);
}

StoreReply TcpStoreClient::call(StoreRequest request, Deadline deadline) {
  const bool can_wait = waits(request.op);
  MutexLock lock(mutex_);
  check_connection();
  Call own;
  own.may_spin = !waits_long(request.op);
  const uint64_t id = ++last_id_;
  const Registration registration(*this, id, own);
  wait_for_room(lock, own, deadline);
  const StoreOp op = request.op;
  const std::string first_key = send_request(id, std::move(request), own);
  wait_for_reply(lock, own, deadline);
  if (!own.reply && can_wait) {
    StoreRequest cancel;
    cancel.op = StoreOp::kCancel;
    queue(encode(RequestFrame{id, std::move(cancel)}), own);
    wait_for_reply(lock, own, Deadline::after(kGrace));
  }
  if (!own.reply) {
    throw Error(ErrorCode::kTimeout, fmt::format("{} does not answer: {} {}", name(), to_string(op),
                                                 quote_key(first_key)));
  }
  return std::move(*own.reply);
}

/// Returns the first key, for messages. Frees the rest while it is in the cache: with a thousand
/// waiting threads, memory that each touches afterwards is the cost.
std::string TcpStoreClient::send_request(uint64_t id, StoreRequest request, Call& own) {
  const RequestFrame frame{id, std::move(request)};
  queue(encode(frame), own);
  return frame.request.keys.empty() ? "" : frame.request.keys[0];
}

void TcpStoreClient::wait_for_room(MutexLock& lock, Call& own, Deadline deadline) {
  while (output_.size() > kMaxOutput) {
    if (deadline.passed()) {
      throw Error(ErrorCode::kTimeout,
                  fmt::format("{} does not read; {} bytes are waiting", name(), output_.size()));
    }
    step(lock, own, deadline);
    check_connection();
  }
}

void TcpStoreClient::wait_for_reply(MutexLock& lock, Call& own, Deadline deadline) {
  while (!own.reply) {
    check_connection();
    if (deadline.passed()) return;
    step(lock, own, deadline);
  }
}

/// Waits a while for news: as the leader if there is none, else until the leader has some. The
/// leader may not know of bytes queued since it began to wait, so their own thread sends them.
void TcpStoreClient::step(MutexLock& lock, Call& own, Deadline deadline) {
  if (!led_) {
    lead_once(own.may_spin, deadline);
  } else if (sent() < own.queued_until || output_.size() > kMaxOutput) {
    push_once(deadline.at_most(kPushTime));
  } else {
    own.wake.wait_until(lock, deadline.when());
  }
}

void TcpStoreClient::lead_once(bool may_spin, Deadline deadline) {
  const int wait_ms = deadline.left_poll_ms();
  if (may_spin && output_.size() == 0 && wait_ms > 1000 * kLookTime.tv_sec) {
    return lead_in_recv(wait_ms);
  }
  pollfd item{fd_.get(), static_cast<short>(output_.size() == 0 ? POLLIN : POLLIN | POLLOUT), 0};
  led_ = true;
  mutex_.unlock();
  const int ready = ::poll(&item, 1, wait_ms);
  mutex_.lock();
  led_ = false;
  if (ready <= 0) return;
  if ((item.revents & POLLOUT) != 0) flush_for_all();
  if ((item.revents & ~POLLOUT) != 0) receive();
}

/// For a reply that comes soon: recv() itself waits, without a poll() before it. A sixth of a
/// call's system calls is saved, which is what a call costs where clients and server share few
/// cores.
void TcpStoreClient::lead_in_recv(int wait_ms) {
  Received buffer;
  ssize_t got = 0;
  int error = 0;
  led_ = true;
  mutex_.unlock();
  poll_spinning(spinning_, wait_ms, [&](int look_ms) {
    got = ::recv(fd_.get(), buffer.data(), buffer.size(), look_ms == 0 ? MSG_DONTWAIT : 0);
    error = errno;
    return got < 0 && (error == EAGAIN || error == EINTR) ? 0 : 1;
  });
  mutex_.lock();
  led_ = false;
  errno = error;
  if (took(buffer, got)) receive();
}

void TcpStoreClient::push_once(Deadline deadline) {
  pollfd item{fd_.get(), POLLOUT, 0};
  mutex_.unlock();
  const int ready = ::poll(&item, 1, deadline.left_poll_ms());
  mutex_.lock();
  if (ready > 0) flush_for_all();
}

void TcpStoreClient::flush_for_all() {
  flush();
  if (output_.size() <= kMaxOutput) wake_all();  // some may wait for room
}

void TcpStoreClient::queue(std::string frame, Call& own) {
  if (tls_) frame = tls_->seal(frame);
  queued_ += frame.size();
  own.queued_until = queued_;
  if (!output_.put(fd_.get(), frame)) sending_failed();
}

void TcpStoreClient::flush() {
  if (!output_.flush(fd_.get())) sending_failed();
}

/// errno is that of send().
void TcpStoreClient::sending_failed() {
  const bool is_gone = errno == EPIPE || errno == ECONNRESET;
  const std::string why = io_error("send").what();
  output_.clear();
  // The server may have sent its reason. Who leads is about to receive that, and the end.
  if (led_ && is_gone) return;
  receive();
  lose("is gone: " + why);
}

void TcpStoreClient::receive() {
  Received buffer;
  while (took(buffer, ::recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT))) {
  }
}

/// Takes the result of a recv(); errno is that of the call. Whether there may be more.
bool TcpStoreClient::took(const Received& buffer, ssize_t got) {
  if (!lost_.empty()) return false;
  if (got > 0) {
    take({buffer.data(), static_cast<size_t>(got)});
    return static_cast<size_t>(got) == buffer.size() && lost_.empty();
  }
  if (got == 0) {
    lose("is gone: its process closed the connection");
  } else if (errno == EINTR) {
    return true;
  } else if (errno != EAGAIN) {
    lose(std::string("is gone: ") + io_error("receive").what());
  }
  return false;
}

void TcpStoreClient::take(std::string_view bytes) {
  try {
    if (tls_) {
      reader_.append(tls_->open(bytes));
      const std::string answer = tls_->take_output();
      queued_ += answer.size();
      output_.keep(answer);
    } else {
      reader_.append(bytes);
    }
    deliver();
  } catch (const Error& error) {
    lose(std::string("is gone: it sent nonsense: ") + error.what());
  }
}

void TcpStoreClient::deliver() {
  while (const auto body = reader_.next()) {
    ReplyFrame frame = decode_reply(*body);
    if (frame.id == 0) return lose("has disconnected this client: " + frame.reply.text);
    const auto it = calls_.find(frame.id);
    if (it == calls_.end()) continue;  // its caller has given up
    it->second->reply = std::move(frame.reply);
    it->second->wake.notify_one();
  }
}

void TcpStoreClient::lose(const std::string& why) {
  if (!lost_.empty()) return;
  lost_ = why;
  wake_all();
}

void TcpStoreClient::wake_all() {
  for (const auto& [id, call] : calls_) call->wake.notify_one();
}

void TcpStoreClient::check_connection() const {
  if (!lost_.empty()) throw Error(ErrorCode::kPeerLost, name() + " " + lost_);
}

std::shared_ptr<Store> make_tcp_store_client(UniqueFd fd, std::unique_ptr<TlsSession> tls,
                                             std::string server) {
  return std::make_shared<TcpStoreClient>(std::move(fd), std::move(tls), std::move(server));
}

}  // namespace lockstep::inline internal
