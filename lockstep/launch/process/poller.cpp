#include "lockstep/launch/process/poller.h"

#include <cerrno>

#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

epoll_event tagged(uint64_t tag, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag;
  return event;
}

}  // namespace

Poller::Poller() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) throw io_error("epoll_create1");
}

void Poller::add(int fd, uint64_t tag, uint32_t events) {
  epoll_event event = tagged(tag, events);
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) throw io_error("epoll_ctl");
}

void Poller::change(int fd, uint64_t tag, uint32_t events) {
  epoll_event event = tagged(tag, events);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Poller::remove(int fd) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

std::span<const epoll_event> Poller::wait(int limit_ms) {
  const int count =
      ::epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()), limit_ms);
  if (count < 0 && errno != EINTR) throw io_error("epoll_wait");
  return {events_.data(), static_cast<size_t>(count > 0 ? count : 0)};
}

}  // namespace lockstep::inline internal
