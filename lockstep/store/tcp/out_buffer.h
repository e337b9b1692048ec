#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep::inline internal {

/// Bytes for a non-blocking socket that has not taken them yet.
class OutBuffer {
 public:
  /// Sends as much as the socket takes, earlier bytes first, and keeps the rest. False if the
  /// connection is lost; errno has the reason. Cost: a byte that waits is moved once or twice,
  /// however often the socket takes a few.
  bool put(int fd, std::string_view bytes);
  /// Sends more of the bytes that were kept, as put() does.
  bool flush(int fd) { return put(fd, {}); }
  /// Bytes that go out with the next put().
  void keep(std::string_view bytes);
  /// Forgets the bytes that were kept.
  void clear();

  size_t size() const { return kept_.size() - sent_; }
  /// Memory: a small multiple of the largest size.
  size_t capacity() const { return kept_.capacity(); }

 private:
  std::string kept_;
  size_t sent_ = 0;  ///< Bytes of kept_ that have been sent.
};

}  // namespace lockstep::inline internal
