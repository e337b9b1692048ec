#include "lockstep/store/tcp/tcp_store_client.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "lockstep/base/literals.h"
#include "lockstep/base/namespaces.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

/// After a wait's deadline the server must report the missing keys at once.
constexpr auto kGrace = 1s;

/// How long a lone call waits in recv() before it looks at its deadline.
constexpr timeval kLookTime{.tv_sec = 1, .tv_usec = 0};

/// With its last one the client asks for shared memory. One with fewer calls, as at the start of a
/// large job, does without.
constexpr int kCallsWithoutSlot = 32;
constexpr int kCallsAfterRefusal = 1024;
/// How long a call waits in shared memory before it looks at the connection.
constexpr auto kSlotLookTime = 20ms;

/// A sending thread does not learn that the leader has left: it checks this often.
constexpr auto kPushTime = 10ms;

/// Waits for others; get() mostly finds its key.
bool waits_long(StoreOp op) {
  return op == StoreOp::kWait || op == StoreOp::kWatch || op == StoreOp::kArrive;
}

bool waits(StoreOp op) {
  return op == StoreOp::kGet || waits_long(op);
}

std::string cancel(uint64_t id) {
  StoreRequest request;
  request.op = StoreOp::kCancel;
  return encode(RequestFrame{id, std::move(request)});
}

}  // namespace

/// Registers a call while it runs; at its end another thread leads if necessary. Made and destroyed
/// under the client's lock.
class TcpStoreClient::Registration {
 public:
  Registration(TcpStoreClient& client, Call& call) LOCKSTEP_NO_THREAD_SAFETY_ANALYSIS
      : client_(client),
        call_(call) {
    client_.calls_[call.id] = &call;
  }
  ~Registration() LOCKSTEP_NO_THREAD_SAFETY_ANALYSIS {
    client_.calls_.erase(call_.id);
    if (call_.is_sent && !call_.reply) ++client_.given_up_;
    client_.wake_next_leader();
  }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

 private:
  TcpStoreClient& client_;
  const Call& call_;
};

TcpStoreClient::TcpStoreClient(UniqueFd fd, std::unique_ptr<TlsSession> tls, std::string server)
    : fd_(std::move(fd)),
      not_in_child_(fd_.get()),
      server_(std::move(server)),
      tls_(std::move(tls)),
      until_slot_(is_process_of(::geteuid(), fd_.get()) ? kCallsWithoutSlot : 0) {
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &kLookTime, sizeof kLookTime);
}

StoreReply TcpStoreClient::call(StoreRequest request, Deadline deadline) {
  const bool can_wait = waits(request.op);
  MutexLock lock(mutex_);
  check_connection();
  empty_slot();
  Call own;
  own.is_short = !waits_long(request.op);
  own.id = ++last_id_;
  const Registration registration(*this, own);
  wait_for_room(lock, own, deadline);
  if (until_slot_ > 0 && --until_slot_ == 0) ask_for_slot(own);
  const StoreOp op = request.op;
  const std::string first_key = send_request(std::move(request), own);
  wait_for_reply(lock, own, deadline);
  if (!own.reply && can_wait) {
    queue(cancel(own.id), own);
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
std::string TcpStoreClient::send_request(StoreRequest request, Call& own) {
  const RequestFrame frame{own.id, std::move(request)};
  std::string bytes = encode(frame);
  own.is_sent = true;
  if (!put_into_slot(own, bytes)) queue(std::move(bytes), own);
  return frame.request.keys.empty() ? "" : frame.request.keys[0];
}

bool TcpStoreClient::put_into_slot(Call& own, std::string_view frame) {
  if (!own.is_short || !call_slot_ || in_slot_ != 0 || given_up_ > 0) return false;
  if (!call_slot_->put(body_of(frame))) return false;
  in_slot_ = own.id;
  own.at_slot = true;
  wake_next_leader();  // this thread may have led until there was room
  // Of no request: it only wakes the server.
  if (call_slot_->server_sleeps()) queue(cancel(0), own);
  return true;
}

/// No call waits for the answer. If the memory is refused, the connection serves as before.
void TcpStoreClient::ask_for_slot(Call& own) {
  StoreRequest request;
  request.op = StoreOp::kOpenCallSlot;
  slot_request_ = ++last_id_;
  queue(encode(RequestFrame{slot_request_, std::move(request)}), own);
}

/// The descriptors came with the first bytes of the reply. After a refusal the client asks again
/// some time: the server may be short of memory, or have replies on the way to this client.
void TcpStoreClient::take_slot(const StoreReply& reply) {
  slot_request_ = 0;
  auto passed = std::exchange(passed_, {});
  if (reply.yes) call_slot_ = ClientCallSlot::from(std::move(passed), reply.number);
  if (!call_slot_) until_slot_ = kCallsAfterRefusal;
}

/// The server's death shows at the connection.
void TcpStoreClient::wait_at_slot(Call& own, Deadline deadline) {
  const ClientCallSlot& slot = *call_slot_;
  const uint32_t count = slot.count();
  const auto slice = std::min<std::chrono::milliseconds>(deadline.left(), kSlotLookTime);
  Spinning spinning = slot_spinning_;
  mutex_.unlock();
  slot.await(count, spinning, std::max<std::chrono::milliseconds>(slice, 1ms));
  mutex_.lock();
  slot_spinning_ = spinning;
  empty_slot();
  own.at_slot = in_slot_ == own.id;
  if (in_slot_ == own.id && !led_) receive();
}

/// Delivers the reply of the request in the call slot, if it is there.
void TcpStoreClient::empty_slot() {
  if (in_slot_ == 0 || !call_slot_->has_answer()) return;
  const uint64_t id = std::exchange(in_slot_, 0);
  try {
    const auto body = call_slot_->take_reply();
    if (!body) return;
    ReplyFrame frame = decode_reply(*body);
    if (frame.id != id) throw Error(ErrorCode::kCorrupt, "a reply to another request");
    deliver(std::move(frame));
  } catch (const Error& error) {
    lose(std::string("is gone: it sent nonsense: ") + error.what());
  }
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
  if (in_slot_ == own.id) {
    wait_at_slot(own, deadline);
  } else if (!led_) {
    lead_once(own.is_short, deadline);
  } else if (sent() < own.queued_until || output_.size() > kMaxOutput) {
    push_once(deadline.at_most(kPushTime));
  } else {
    own.wake.wait_until(lock, deadline.when());
  }
}

void TcpStoreClient::lead_once(bool is_short, Deadline deadline) {
  const int wait_ms = deadline.left_poll_ms();
  if (is_short && output_.size() == 0 && wait_ms > 1000 * kLookTime.tv_sec) {
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
  std::vector<UniqueFd> passed;
  ssize_t got = 0;
  int error = 0;
  led_ = true;
  mutex_.unlock();
  poll_spinning(spinning_, wait_ms, [&](int look_ms) {
    got = receive_bytes(buffer, look_ms == 0 ? MSG_DONTWAIT : 0, passed);
    error = errno;
    return got < 0 && (error == EAGAIN || error == EINTR) ? 0 : 1;
  });
  mutex_.lock();
  led_ = false;
  for (auto& fd : passed) passed_.push_back(std::move(fd));
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

}  // namespace lockstep::inline internal
