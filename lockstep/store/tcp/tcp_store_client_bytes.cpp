// The half of a client that moves bytes: out through a buffer, in through a reader of frames.

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "lockstep/error.h"
#include "lockstep/store/tcp/tcp_store_client.h"

namespace lockstep::inline internal {

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
  while (took(buffer, receive_bytes(buffer, MSG_DONTWAIT, passed_))) {
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
    if (slot_request_ == 0) passed_.clear();  // none but that request's reply should bring any
  } catch (const Error& error) {
    lose(std::string("is gone: it sent nonsense: ") + error.what());
  }
}

void TcpStoreClient::deliver() {
  while (const auto body = reader_.next()) {
    ReplyFrame frame = decode_reply(*body);
    if (frame.id == 0) return lose("has disconnected this client: " + frame.reply.text);
    deliver(std::move(frame));
  }
}

void TcpStoreClient::deliver(ReplyFrame frame) {
  if (slot_request_ != 0 && frame.id == slot_request_) return take_slot(frame.reply);
  const auto it = calls_.find(frame.id);
  if (it == calls_.end()) {
    --given_up_;
    return;
  }
  it->second->reply = std::move(frame.reply);
  it->second->wake.notify_one();
}

void TcpStoreClient::lose(const std::string& why) {
  if (!lost_.empty()) return;
  lost_ = why;
  wake_all();
}

/// A thread at the call slot does not listen, and leads by itself if need be.
void TcpStoreClient::wake_next_leader() {
  if (led_) return;
  for (const auto& [id, call] : calls_) {
    if (!call->at_slot) return call->wake.notify_one();
  }
}

void TcpStoreClient::wake_all() {
  for (const auto& [id, call] : calls_) call->wake.notify_one();
}

void TcpStoreClient::check_connection() const {
  if (!lost_.empty()) throw Error(ErrorCode::kPeerLost, name() + " " + lost_);
}

}  // namespace lockstep::inline internal
