#include "lockstep/base/in_child.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <set>
#include <utility>

namespace lockstep::inline internal {
namespace {

/// A std::mutex, not a Mutex: it is locked before the fork and unlocked after it.
struct Sockets {
  std::mutex mutex;
  std::multiset<int> open;
  std::atomic<uint32_t> generation = 0;

  Sockets();
};

Sockets& sockets() {
  static auto& of_process = *new Sockets;  // never destroyed: a fork may happen at the very end
  return of_process;
}

void before_fork() {
  sockets().mutex.lock();
}

void in_parent() {
  sockets().mutex.unlock();
}

/// Uses only functions that are safe between fork and exec. Descriptor numbers stay in use: the
/// copy of their owner may close them.
void in_child() {
  auto& all = sockets();
  const int nothing = all.open.empty() ? -1 : ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : all.open) {
    if (nothing >= 0) ::dup3(nothing, fd, O_CLOEXEC);
  }
  if (nothing >= 0) ::close(nothing);
  all.generation.fetch_add(1);
  all.mutex.unlock();
}

Sockets::Sockets() {
  ::pthread_atfork(before_fork, in_parent, in_child);
}

}  // namespace

uint32_t fork_generation() {
  return sockets().generation.load(std::memory_order_relaxed);
}

NotInChild::NotInChild(int fd) : fd_(fd) {
  const std::lock_guard lock(sockets().mutex);
  sockets().open.insert(fd_);
}

NotInChild::NotInChild(NotInChild&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

NotInChild::~NotInChild() {
  if (fd_ < 0) return;
  const std::lock_guard lock(sockets().mutex);
  if (const auto found = sockets().open.find(fd_); found != sockets().open.end())
    sockets().open.erase(found);
}

}  // namespace lockstep::inline internal
