#include "lockstep/store/tcp/out_buffer.h"

#include <sys/socket.h>

#include <cerrno>

namespace lockstep::inline internal {

bool OutBuffer::put(int fd, std::string_view bytes) {
  // Nearly always the socket takes all at once and kept_ is never touched.
  if (size() > 0) {
    keep(bytes);
    bytes = std::string_view(kept_).substr(sent_);
  }
  const bool kept = !kept_.empty();
  while (!bytes.empty()) {
    const ssize_t put = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno != EAGAIN) return false;
    if (put < 0) break;
    bytes.remove_prefix(static_cast<size_t>(put));
    if (kept) sent_ += static_cast<size_t>(put);
  }
  if (!kept) {
    kept_ = bytes;
  } else if (bytes.empty()) {
    clear();
  }
  return true;
}

void OutBuffer::keep(std::string_view bytes) {
  if (sent_ > kept_.size() / 2) {  // frees sent bytes, at no more than the cost of sending
    kept_.erase(0, sent_);
    sent_ = 0;
  }
  kept_.append(bytes);
}

void OutBuffer::clear() {
  kept_.clear();
  kept_.shrink_to_fit();  // kept_ = {} would keep its memory
  sent_ = 0;
}

}  // namespace lockstep::inline internal
