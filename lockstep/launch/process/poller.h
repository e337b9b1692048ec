#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstdint>
#include <span>

#include "lockstep/base/unique_fd.h"

namespace lockstep::inline internal {

/// epoll with a tag for each descriptor. A closed descriptor is removed automatically.
class Poller {
 public:
  Poller();  ///< Errors: kIo.

  /// Errors: kIo.
  void add(int fd, uint64_t tag, uint32_t events = EPOLLIN);
  void change(int fd, uint64_t tag, uint32_t events);
  void remove(int fd);

  /// Ready descriptors; valid until the next call. limit_ms -1: waits for ever. Errors: kIo.
  std::span<const epoll_event> wait(int limit_ms);

 private:
  UniqueFd epoll_;
  std::array<epoll_event, 64> events_;
};

}  // namespace lockstep::inline internal
