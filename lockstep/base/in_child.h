#pragma once
// Processes that this one forks without executing another program.
//
// Such a child has copies of its parent's sockets, so that peers would not see the parent die while
// the child lives; and it has none of the parent's threads, so that it must not wait for them.

#include <cstdint>
#include <new>
#include <utility>

namespace lockstep {

/// Another number than when an object was made says that the object is the parent's.
uint32_t fork_generation();

/// For the child of what is the parent's: takes it out of its object, never to be destroyed.
template <class T>
void leave_to_parent(T& owned) noexcept {
  static_cast<void>(new (std::nothrow) T(std::move(owned)));
}

/// A socket that forked children are not to have. It stays the owner's to close.
class NotInChild {
 public:
  explicit NotInChild(int fd);
  ~NotInChild();
  NotInChild(NotInChild&& other) noexcept;
  NotInChild& operator=(NotInChild&&) = delete;

 private:
  int fd_;
};

}  // namespace lockstep
