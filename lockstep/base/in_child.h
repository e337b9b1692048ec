#pragma once
// Processes that this one forks without executing another program.
//
// Such a child has copies of its parent's sockets: peers would not see the parent die while the
// child lives. It has none of the parent's threads, so it must not wait for them.

#include <cstdint>
#include <new>
#include <utility>

namespace lockstep::inline internal {

/// If it differs from the number at an object's creation, the object belongs to the parent process.
uint32_t fork_generation();

/// For a child that holds the parent's state: takes the state out of its owner and never destroys
/// it.
template <class T>
void leave_to_parent(T& owned) noexcept {
  static_cast<void>(new (std::nothrow) T(std::move(owned)));
}

/// A socket or a locked file that forked children must not keep. Its owner closes it.
class NotInChild {
 public:
  explicit NotInChild(int fd);
  ~NotInChild();
  NotInChild(NotInChild&& other) noexcept;
  NotInChild& operator=(NotInChild&&) = delete;

 private:
  int fd_;
};

}  // namespace lockstep::inline internal
